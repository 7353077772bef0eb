"""Hierarchical mixture of experts with top-2 gating."""

import torch
from mixture_of_experts import HeirarchicalMoE
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.moe = HeirarchicalMoE(dim=dim, num_experts=experts, hidden_dim=2 * dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        out, loss = self.moe(self.norm(x))
        return x + out, loss


def get_inputs():
    return [torch.randn(2, 64, 64)]


def get_init_inputs():
    return [64, (2, 4)]
