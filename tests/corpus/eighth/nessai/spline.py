"""Neural spline flow of nessai."""

import torch
from nessai.flows import NeuralSplineFlow
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, hidden, transforms):
        super().__init__()
        self.model = NeuralSplineFlow(dim, hidden, transforms, 2, num_bins=8)

    def forward(self, x):
        z, log_j = self.model.forward(x)
        return z, log_j


def get_inputs():
    return [torch.randn(64, 6)]


def get_init_inputs():
    return [6, 64, 4]
