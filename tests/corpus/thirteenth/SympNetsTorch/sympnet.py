"""SympNet: symplectic linear and activation modules for Hamiltonian dynamics."""

import torch
from SympNetsTorch.SympNets import Activation, Linear
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        parts = []
        for i in range(layers):
            way = "up" if i % 2 else "low"
            parts += [Linear(dim, way, 3), Activation(torch.tanh, dim, way)]
        self.model = nn.Sequential(*parts, Linear(dim))

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(64, 8)]


def get_init_inputs():
    return [4, 3]
