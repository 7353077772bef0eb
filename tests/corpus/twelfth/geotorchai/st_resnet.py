"""ST-ResNet: crowd-flow forecasting on a grid from closeness, period and trend."""

import torch
from geotorchai.models.grid import STResNet
from torch import nn


class Model(nn.Module):
    def __init__(self, units):
        super().__init__()
        shape = (3, 2, 16, 16)
        self.model = STResNet(shape, shape, shape, external_dim=8, nb_residual_unit=units, CF=32)

    def forward(self, closeness, period, trend, external):
        return self.model(closeness, period, trend, external)


def get_inputs():
    return [
        torch.randn(2, 6, 16, 16),
        torch.randn(2, 6, 16, 16),
        torch.randn(2, 6, 16, 16),
        torch.randn(2, 8),
    ]


def get_init_inputs():
    return [2]
