"""Causal-retro-causal neural network."""

import torch
from prosper_nn.models.crcnn.crcnn import CRCNN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = CRCNN(
            n_state_neurons=24, n_features_Y=2, past_horizon=8, forecast_horizon=3, n_branches=4
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(8, 4, 2)]


def get_init_inputs():
    return []
