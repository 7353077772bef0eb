"""Kronecker attention over the rows and columns of an image."""

import torch
from kronecker_attention_pytorch import KroneckerSelfAttention
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.model = KroneckerSelfAttention(dim, heads=4, dim_heads=16)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 64, 16, 24)]


def get_init_inputs():
    return [64]
