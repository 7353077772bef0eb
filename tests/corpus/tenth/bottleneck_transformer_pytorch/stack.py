"""Stack of bottleneck transformers with relative positions, from bottleneck-transformer-pytorch."""

import torch
from bottleneck_transformer_pytorch import BottleStack
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, size, layers):
        super().__init__()
        self.model = BottleStack(
            dim=dim,
            fmap_size=size,
            dim_out=2 * dim,
            num_layers=layers,
            proj_factor=4,
            downsample=True,
            heads=4,
            dim_head=32,
            rel_pos_emb=True,
        )

    def forward(self, features):
        return self.model(features)


def get_inputs():
    return [torch.randn(2, 64, 16, 16)]


def get_init_inputs():
    return [64, 16, 3]
