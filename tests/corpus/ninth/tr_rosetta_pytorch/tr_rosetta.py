"""trRosetta: angles and distances of residue pairs, from tr_rosetta_pytorch."""

import torch
from torch import nn
from tr_rosetta_pytorch import trRosettaNetwork


class Model(nn.Module):
    def __init__(self, filters, layers):
        super().__init__()
        self.model = trRosettaNetwork(filters=filters, kernel=3, num_layers=layers)

    def forward(self, features):
        return self.model(features)


def get_inputs():
    return [torch.randn(1, 526, 48, 48)]


def get_init_inputs():
    return [64, 21]
