"""ITTR: two hybrid perception blocks with dual-pruned attention."""

import torch
from ITTR_pytorch import HPB
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            HPB(dim=64, dim_head=16, heads=4, attn_height_top_k=8, attn_width_top_k=8),
            HPB(dim=64, dim_head=16, heads=4, attn_height_top_k=8, attn_width_top_k=8),
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 64, 16, 16)]


def get_init_inputs():
    return []
