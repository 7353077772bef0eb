"""Attention by a mixture of symmetric and asymmetric distances."""

import torch
from quasimetric_attention import QuasimetricAttention
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.model = QuasimetricAttention(
            dim, dim_head=32, heads=4, prenorm=True, learned_temp=True
        )

    def forward(self, x):
        return self.model(x, return_distance=True)


def get_inputs():
    return [torch.randn(2, 32, 128)]


def get_init_inputs():
    return [128]
