"""BitNet transformer: attention and feed-forward with 1-bit linear layers."""

import torch
from bitnet import BitNetTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = BitNetTransformer(dim=dim, depth=depth, num_tokens=2000, heads=8, ff_mult=4)

    def forward(self, tokens):
        return self.model(tokens)


def get_inputs():
    return [torch.randint(0, 2000, (2, 64))]


def get_init_inputs():
    return [256, 4]
