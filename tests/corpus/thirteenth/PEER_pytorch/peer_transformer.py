"""PEER: product-key attention and a mixture of many tiny experts."""

import torch
from PEER_pytorch import PEER, PKAttention
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.embed = nn.Embedding(500, dim)
        self.attention = PKAttention(dim=dim, num_key_values=400, heads=8, pre_rmsnorm=True)
        self.experts = nn.ModuleList(
            [
                PEER(
                    dim=dim,
                    heads=4,
                    num_experts=experts,
                    num_experts_per_head=8,
                    dim_key=32,
                    pre_rmsnorm=True,
                )
                for _ in range(2)
            ]
        )

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + self.attention(x)
        for peer in self.experts:
            x = x + peer(x)
        return x


def get_inputs():
    return [torch.randint(0, 500, (2, 24))]


def get_init_inputs():
    return [128, 1024]
