"""ncps' LTC: liquid time-constant cells, an ordinary differential equation solved in six steps
a sample."""

import torch
from ncps.torch import LTC


class Model(torch.nn.Module):
    def __init__(self, features, units):
        super().__init__()
        self.net = LTC(features, units)
        self.head = torch.nn.Linear(units, 2)

    def forward(self, sequence):
        states, last = self.net(sequence)
        return self.head(states), last


def get_inputs():
    return [torch.randn(4, 6, 5)]


def get_init_inputs():
    return [5, 16]
