"""Transformer blocks whose attention pairs searches with retrievals."""

import torch
from compositional_attention_pytorch import CompositionalAttention
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.attentions = nn.ModuleList(
            CompositionalAttention(dim, dim_head=32, num_searches=6, num_retrievals=3, prenorm=True)
            for _ in range(depth)
        )
        self.mlps = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
            )
            for _ in range(depth)
        )

    def forward(self, x, mask):
        for attention, mlp in zip(self.attentions, self.mlps, strict=True):
            x = attention(x, mask=mask) + x
            x = mlp(x) + x
        return x


def get_inputs():
    mask = torch.ones(2, 128, dtype=torch.bool)
    mask[0, 100:] = False
    return [torch.randn(2, 128, 192), mask]


def get_init_inputs():
    return [192, 3]
