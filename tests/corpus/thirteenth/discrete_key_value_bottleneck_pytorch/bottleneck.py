"""Discrete key-value bottleneck behind a small convolutional encoder."""

import torch
from discrete_key_value_bottleneck_pytorch import DiscreteKeyValueBottleneck
from einops.layers.torch import Rearrange
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, memories):
        super().__init__()
        encoder = nn.Sequential(
            nn.Conv2d(3, dim, 8, stride=8),
            nn.GELU(),
            nn.Conv2d(dim, dim, 3, padding=1),
            Rearrange("b c h w -> b (h w) c"),
            nn.LayerNorm(dim),
        )
        self.bottleneck = DiscreteKeyValueBottleneck(
            encoder=encoder,
            dim=dim,
            num_memories=memories,
            dim_memory=64,
            num_memory_codebooks=2,
            decay=0.9,
        )
        self.head = nn.Linear(64, 10)

    def forward(self, img):
        return self.head(self.bottleneck(img).mean(1))


def get_inputs():
    return [torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return [96, 128]
