"""Blocks of linear recurrent units from LRU_pytorch in a classifier of sequences."""

import torch
from LRU_pytorch import LRU
from torch import nn


class Model(nn.Module):
    def __init__(self, features, width, states, layers):
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.units = nn.ModuleList(LRU(width, width, states) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.enter(x)
        for norm, unit, gate in zip(self.norms, self.units, self.gates, strict=False):
            x = x + nn.functional.glu(gate(unit(norm(x))), -1)
        return self.head(x.mean(1))


def get_inputs():
    return [torch.randn(4, 64, 3)]


def get_init_inputs():
    return [3, 32, 64, 3]
