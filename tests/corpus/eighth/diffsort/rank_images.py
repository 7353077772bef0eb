"""Differentiable sorting network of diffsort over scores of small images."""

import torch
from diffsort import DiffSortNet
from torch import nn


class Model(nn.Module):
    def __init__(self, kind, size):
        super().__init__()
        self.score = nn.Sequential(
            nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 144, 1)
        )
        self.sort = DiffSortNet(kind, size, steepness=8.0, distribution="cauchy")

    def forward(self, images):
        scores = self.score(images.flatten(0, 1)).view(images.shape[:2])
        return self.sort(scores)


def get_inputs():
    return [torch.rand(3, 16, 1, 28, 28)]


def get_init_inputs():
    return ["bitonic", 16]
