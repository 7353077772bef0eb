"""Stylizing ViT that gives one slice another's style, from stylizing-vit."""

import torch
from stylizing_vit.model import StylizingViT
from torch import nn


class Model(nn.Module):
    def __init__(self, size, dim, depth):
        super().__init__()
        self.model = StylizingViT(
            backbone="tiny",
            input_size=size,
            encoder_embed_dim=dim,
            encoder_depth=depth,
            encoder_num_heads=4,
        )

    def forward(self, anatomy, style):
        return self.model(anatomy, style)


def get_inputs():
    return [torch.rand(1, 3, 64, 64), torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [64, 96, 2]
