"""Glow: invertible 1x1 convolutions and affine couplings."""

import torch
from glow.glow import Glow
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Glow(3, nb_blocks=2, nb_flows=4, affine_coupling=True)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs():
    return []
