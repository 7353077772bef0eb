"""Multi-resolution time series transformer."""

import torch
from mtst.Models.forecasting_model import MTSTForecaster
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MTSTForecaster(
            input_dim=7, output_shape=(24,), embed_dim=64, heads=8, n_layers=2
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 96, 7)]


def get_init_inputs():
    return []
