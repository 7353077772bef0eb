"""Error correction neural network for a time series."""

import torch
from prosper_nn.models.ecnn.ecnn import ECNN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ECNN(
            n_features_U=5, n_state_neurons=32, past_horizon=10, forecast_horizon=3, n_features_Y=2
        )

    def forward(self, u, y):
        return self.model(u, y)


def get_inputs():
    return [torch.randn(10, 4, 5), torch.randn(10, 4, 2)]


def get_init_inputs():
    return []
