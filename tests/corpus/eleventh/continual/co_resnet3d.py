"""Continual 3D convolutions with a residual connection and pooling."""

import continual as co
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = co.Sequential(
            co.Conv3d(3, 16, (3, 3, 3), padding=(1, 1, 1)),
            nn.BatchNorm3d(16),
            nn.ReLU(),
            co.Residual(co.Conv3d(16, 16, (3, 3, 3), padding=(1, 1, 1))),
            nn.ReLU(),
            co.Conv3d(16, 32, (5, 3, 3), padding=(0, 1, 1)),
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 3, 8, 16, 16)]


def get_init_inputs():
    return []
