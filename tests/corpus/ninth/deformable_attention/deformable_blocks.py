"""Blocks of deformable attention in two dimensions, from deformable_attention."""

import torch
from deformable_attention import DeformableAttention2D
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, 4, stride=4)
        self.blocks = nn.ModuleList(
            DeformableAttention2D(
                dim=dim,
                dim_head=32,
                heads=4,
                downsample_factor=4,
                offset_scale=4,
                offset_kernel_size=6,
            )
            for _ in range(depth)
        )
        self.head = nn.Linear(dim, 10)

    def forward(self, image):
        x = self.stem(image)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean((2, 3)))


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return [64, 2]
