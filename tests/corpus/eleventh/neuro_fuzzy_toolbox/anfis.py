"""Adaptive neuro-fuzzy inference system with bell membership functions."""

import torch
from neuro_fuzzy_toolbox.models import ANFIS
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ANFIS([3, 3, 2], outputs=2)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(32, 3)]


def get_init_inputs():
    return []
