"""Encoder of complex attention from torchcvnn."""

import torch
from torch import nn
from torchcvnn.nn import TransformerEncoderLayer


class Model(nn.Module):
    def __init__(self, dim, heads, layers):
        super().__init__()
        self.layers = nn.ModuleList(
            TransformerEncoderLayer(dim, heads, dim_feedforward=2 * dim) for _ in range(layers)
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def get_inputs():
    return [torch.randn(20, 4, 64, dtype=torch.complex64)]


def get_init_inputs():
    return [64, 4, 3]
