"""StemGNN: spectral graph convolutions of series."""

import torch
from basicts.models.StemGNN import StemGNN, StemGNNConfig
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = StemGNN(StemGNNConfig(input_len=24, output_len=12, num_features=10))

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 24, 10)]


def get_init_inputs():
    return []
