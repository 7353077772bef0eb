"""Odd-even sorting network of diffsort with the logistic relaxation."""

import torch
from diffsort import DiffSortNet
from torch import nn


class Model(nn.Module):
    def __init__(self, size, steepness):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 1))
        self.sort = DiffSortNet("odd_even", size, steepness=steepness, distribution="logistic_phi")

    def forward(self, items):
        return self.sort(self.score(items).squeeze(-1))


def get_inputs():
    return [torch.randn(4, 11, 12)]


def get_init_inputs():
    return [11, 12.0]
