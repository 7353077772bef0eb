"""Mixture density network for distributional regression."""

import torch
from drn.models.mdn import MDN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MDN("gamma", num_hidden_layers=2, num_components=4, hidden_size=32)
        self.model(torch.randn(2, 6))

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(32, 6)]


def get_init_inputs():
    return []
