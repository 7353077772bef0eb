"""tab-transformer-pytorch's TabTransformer: categories attend, continuous columns join the last
network."""

import torch
from tab_transformer_pytorch import TabTransformer


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.net = TabTransformer(
            categories=(10, 5, 6, 5, 8),
            num_continuous=10,
            dim=width,
            depth=depth,
            heads=4,
            mlp_act=torch.nn.ReLU(),
        )

    def forward(self, categories, numbers):
        return self.net(categories, numbers)


def get_inputs():
    return [torch.randint(0, 5, (16, 5)), torch.randn(16, 10)]


def get_init_inputs():
    return [32, 4]
