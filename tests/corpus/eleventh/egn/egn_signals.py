"""Equivariant geodesic network: signals to covariance matrices to classes."""

import torch
from egn.models import EGN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = EGN(num_classes=4, in_dim=12, input_kind="signal", depth=2)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 12, 100)]


def get_init_inputs():
    return []
