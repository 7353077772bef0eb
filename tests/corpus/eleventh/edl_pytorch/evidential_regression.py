"""Evidential regression: a network that ends in a normal-inverse-gamma layer."""

import torch
from edl_pytorch import NormalInvGamma
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), NormalInvGamma(64, 2)
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(64, 8)]


def get_init_inputs():
    return []
