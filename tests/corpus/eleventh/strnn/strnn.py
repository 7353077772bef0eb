"""Masked network whose zero pattern follows a given adjacency."""

import numpy
import torch
from strnn.models.strNN import StrNN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        adjacency = numpy.tril(numpy.ones((10, 10)), -1)
        self.model = StrNN(10, (50, 50), 10, opt_type="greedy", adjacency=adjacency)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(16, 10)]


def get_init_inputs():
    return []
