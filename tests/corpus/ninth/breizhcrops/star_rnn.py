"""Network of STAR cells for crop types from satellite series, from breizhcrops."""

import torch
from breizhcrops.models import StarRNN
from torch import nn


class Model(nn.Module):
    def __init__(self, bands, crops):
        super().__init__()
        self.model = StarRNN(input_dim=bands, num_classes=crops, hidden_dims=128, num_layers=3)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(8, 45, 13)]


def get_init_inputs():
    return [13, 9]
