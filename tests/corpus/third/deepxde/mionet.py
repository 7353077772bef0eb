"""MIONet of DeepXDE: two input functions and a trunk of coordinates, merged by products."""

import os

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde
import torch


class Model(torch.nn.Module):
    def __init__(self, sensors, width, basis):
        super().__init__()
        self.net = deepxde.nn.MIONetCartesianProd(
            [sensors, width, width, basis],
            [sensors, width, width, basis],
            [2, width, width, basis],
            {"branch1": "relu", "branch2": "gelu", "trunk": "tanh"},
            "Glorot normal",
            regularization=None,
        )

    def forward(self, first, second, points):
        return self.net((first, second, points))


def get_inputs():
    return [torch.randn(8, 100), torch.randn(8, 100), torch.rand(400, 2)]


def get_init_inputs():
    return [100, 128, 64]
