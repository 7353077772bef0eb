"""Exact-gradient spiking network with time-to-first-spike coding."""

import torch
from exact_snn import ExactTTFSNetwork
from torch import nn


class Model(nn.Module):
    def __init__(self, sizes, points):
        super().__init__()
        self.model = ExactTTFSNetwork(sizes, grid_pts=points)

    def forward(self, times):
        return self.model(times)


def get_inputs():
    return [20 * torch.rand(30, 4)]


def get_init_inputs():
    return [[30, 24, 10], 201]
