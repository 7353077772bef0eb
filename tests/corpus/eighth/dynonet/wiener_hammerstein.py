"""Wiener-Hammerstein model of dynoNet: transfer functions around a static non-linearity."""

import torch
from dynonet.lti import MimoLinearDynamicalOperator
from dynonet.static import MimoStaticNonLinearity
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = MimoLinearDynamicalOperator(1, channels, n_b=8, n_a=4, n_k=1)
        self.static = MimoStaticNonLinearity(channels, channels, n_hidden=20)
        self.second = MimoLinearDynamicalOperator(channels, 1, n_b=8, n_a=4)

    def forward(self, signal):
        return self.second(self.static(self.first(signal)))


def get_inputs():
    return [torch.randn(4, 200, 1)]


def get_init_inputs():
    return [8]
