"""Two FloydNet blocks: pivotal attention over pairs of nodes."""

import torch
from floydnet import PivotalAttentionBlock
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.blocks = nn.ModuleList(
            PivotalAttentionBlock(dim, 4, norm_fn="rms") for _ in range(depth)
        )
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def get_inputs():
    return [torch.randn(1, 12, 12, 64)]


def get_init_inputs():
    return [64, 2]
