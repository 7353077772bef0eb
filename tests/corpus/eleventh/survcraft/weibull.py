"""Feed-forward network with a Weibull survival module."""

import torch
from survcraft.input_modules import FeedForwardNet
from survcraft.survival_modules import WeibullSurvivalModule
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.survival = WeibullSurvivalModule()
        self.net = FeedForwardNet(8, 2, [32, 32], batch_norm=True)

    def forward(self, x, times):
        return self.survival("survival", self.net(x), times)


def get_inputs():
    return [torch.randn(16, 8), torch.linspace(0.1, 2.0, 12)]


def get_init_inputs():
    return []
