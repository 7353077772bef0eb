"""Convolutions on the hexagonal pixels of a telescope camera, from hexagdly."""

import hexagdly
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, width, classes):
        super().__init__()
        self.features = nn.Sequential(
            hexagdly.Conv2d(channels, width, kernel_size=2, stride=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            hexagdly.MaxPool2d(kernel_size=1, stride=2),
            hexagdly.Conv2d(width, 2 * width, kernel_size=1, stride=1),
            nn.ReLU(),
            hexagdly.Conv2d(2 * width, 4 * width, kernel_size=1, stride=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images):
        return self.head(self.features(images).mean((2, 3)))


def get_inputs():
    return [torch.rand(4, 1, 41, 40)]


def get_init_inputs():
    return [1, 16, 2]
