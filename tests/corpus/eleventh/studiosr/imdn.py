"""IMDN: information multi-distillation for super-resolution."""

import torch
from studiosr.models import IMDN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = IMDN(scale=2, n_feats=64, n_modules=6)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.rand(1, 3, 24, 24)]


def get_init_inputs():
    return []
