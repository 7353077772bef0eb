"""GTNNWR: geographically and temporally neural network weighted regression."""

import torch
from gnnwr.networks import STPNN, SWNN
from torch import nn


class Model(nn.Module):
    def __init__(self, neighbours, coefficients):
        super().__init__()
        self.proximity = STPNN([32, 16], 2, 1)
        self.weights = SWNN([256, 128, 64, 32], neighbours, coefficients)
        self.ols = nn.Parameter(torch.randn(coefficients))

    def forward(self, distances, x):
        w = self.weights(self.proximity(distances))
        return (w * self.ols * x).sum(1)


def get_inputs():
    return [torch.rand(64, 400, 2), torch.randn(64, 8)]


def get_init_inputs():
    return [400, 8]
