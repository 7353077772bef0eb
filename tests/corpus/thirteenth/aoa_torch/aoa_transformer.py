"""Attention-on-attention transformer language model."""

import torch
from aoa_torch import AoATransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = AoATransformer(dim, depth, 1000, dim_head=32, heads=4)

    def forward(self, tokens):
        return self.model(tokens)


def get_inputs():
    return [torch.randint(0, 1000, (2, 48))]


def get_init_inputs():
    return [192, 4]
