"""B-spline Kolmogorov-Arnold network."""

import torch
from inkan import KANNetwork
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = KANNetwork([8, 32, 32, 4], compile_basis=False)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.rand(32, 8) * 2 - 1]


def get_init_inputs():
    return []
