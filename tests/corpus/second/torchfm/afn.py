"""The adaptive factorization network: interactions of any order by logarithmic neurons."""

import torch
from torchfm.model.afn import AdaptiveFactorizationNetwork


class Model(torch.nn.Module):
    def __init__(self, fields):
        super().__init__()
        self.net = AdaptiveFactorizationNetwork(fields, 16, 200, (64, 32), (0.0, 0.0, 0.0))

    def forward(self, categories):
        return self.net(categories)


def get_inputs():
    return [torch.stack([torch.randint(0, size, (64,)) for size in (100, 50, 7, 20)], dim=1)]


def get_init_inputs():
    return [[100, 50, 7, 20]]
