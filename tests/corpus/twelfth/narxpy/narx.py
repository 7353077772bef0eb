"""NARX network in closed loop over a time series."""

import torch
from narxpy.model import NARX
from torch import nn


class Model(nn.Module):
    def __init__(self, d_x, d_y):
        super().__init__()
        self.model = NARX(d_i=3, d_o=2, d_x=d_x, d_y=d_y, d_hl=32, act_func="Tanh")

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 12, 5)]


def get_init_inputs():
    return [5, 2]
