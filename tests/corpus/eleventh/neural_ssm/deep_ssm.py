"""Deep state-space model with certified gain."""

import torch
from neural_ssm.ssm.layers import DeepSSM
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = DeepSSM(4, 3, d_model=16, d_state=16, n_layers=2)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 40, 4)]


def get_init_inputs():
    return []
