"""ConvLSTM of three layers over a sequence of raster images."""

import torch
from geotorchai.models.grid import ConvLSTM
from torch import nn


class Model(nn.Module):
    def __init__(self, input_dim):
        super().__init__()
        self.model = ConvLSTM(input_dim, hidden_dim=[32, 16, 16], kernel_size=(3, 3), num_layers=3)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 4, 3, 16, 16)]


def get_init_inputs():
    return [3]
