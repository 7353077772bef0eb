"""Perceptron surrogate of a physical model."""

import torch
from adeptml.configs import MLPConfig
from adeptml.models import MLP
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MLP(
            MLPConfig(
                num_input_dim=4,
                num_hidden_dim=32,
                num_output_dim=2,
                num_hidden_layers=3,
                hidden_activation="tanh",
                output_activation="identity",
            )
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(16, 4)]


def get_init_inputs():
    return []
