"""tab-transformer-pytorch's FTTransformer: every column of a table is a token."""

import torch
from tab_transformer_pytorch import FTTransformer


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.net = FTTransformer(
            categories=(4, 9, 3), num_continuous=6, dim=width, depth=depth, heads=4, dim_out=2
        )

    def forward(self, categories, numbers):
        return self.net(categories, numbers)


def get_inputs():
    return [torch.randint(0, 3, (16, 3)), torch.randn(16, 6)]


def get_init_inputs():
    return [48, 3]
