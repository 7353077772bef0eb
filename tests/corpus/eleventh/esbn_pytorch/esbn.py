"""Emergent symbol binding network over a sequence of images."""

import torch
from esbn_pytorch import ESBN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ESBN(value_dim=64, key_dim=64, hidden_dim=128, output_dim=4)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 2, 3, 32, 32)]


def get_init_inputs():
    return []
