"""A Kolmogorov-Arnold network of B-splines with symbolic branches, 4 inputs, 2 outputs."""

import torch
from kan import KAN


class Model(torch.nn.Module):
    def __init__(self, width, grid, k):
        super().__init__()
        self.net = KAN(width=width, grid=grid, k=k, seed=0, auto_save=False, save_act=False)

    def forward(self, x):
        return self.net(x)


def get_inputs():
    return [torch.rand(64, 4) * 2 - 1]


def get_init_inputs():
    return [[4, 8, 8, 2], 5, 3]
