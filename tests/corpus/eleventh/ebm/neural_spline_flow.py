"""Neural spline coupling flow: log density of points."""

import torch
from ebm.nets import NeuralSplineCouplingFlow
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = NeuralSplineCouplingFlow(dim=6, n_layers=4, hidden=64)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(32, 6)]


def get_init_inputs():
    return []
