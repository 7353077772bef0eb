"""FT-Transformer with gated feed-forwards."""

import torch
from fttransformer.model import FTTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = FTTransformer(
            categories=(10, 5, 6, 5, 8), num_continuous=10, dim=32, depth=3, heads=4
        )

    def forward(self, categories, numbers):
        return self.model(categories, numbers)


def get_inputs():
    return [torch.randint(0, 5, (16, 5)), torch.randn(16, 10)]


def get_init_inputs():
    return []
