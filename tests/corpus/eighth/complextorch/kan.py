"""Kolmogorov-Arnold network of complex values from complextorch."""

import torch
from complextorch.models import CVKAN
from torch import nn


class Model(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.model = CVKAN(widths)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(16, 12, dtype=torch.cfloat)]


def get_init_inputs():
    return [[12, 32, 16, 4]]
