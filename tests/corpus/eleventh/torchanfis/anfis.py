"""Takagi-Sugeno fuzzy inference with soft rule selection."""

import torch
from torch import nn
from torchanfis import ANFIS


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ANFIS(6, n_mfs=3, n_rules=8, soft_mf=True)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(32, 6)]


def get_init_inputs():
    return []
