"""Recurrent equilibrium network."""

import torch
from neural_ssm.rens.ren import REN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = REN(4, 3, 8, 8)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 20, 4)]


def get_init_inputs():
    return []
