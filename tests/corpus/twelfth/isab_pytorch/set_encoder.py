"""Set encoder: two induced set attention blocks."""

import torch
from isab_pytorch import ISAB
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.blocks = nn.ModuleList(ISAB(dim=dim, heads=4, num_latents=16) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        for block in self.blocks:
            out, latents = block(x)
            x = x + out
        return self.norm(x), latents


def get_inputs():
    return [torch.randn(2, 50, 128)]


def get_init_inputs():
    return [128, 2]
