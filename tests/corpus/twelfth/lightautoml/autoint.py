"""AutoInt for tabular data: attention between the fields and a network beside it."""

import torch
from lightautoml.ml_algo.torch_based.nn_models import AutoInt
from torch import nn


class Model(nn.Module):
    def __init__(self, n_in, size):
        super().__init__()
        self.model = AutoInt(n_in, size, n_out=1, mlp_hidden_sizes=(64, 32), device="cpu")

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(16, 10, 16)]


def get_init_inputs():
    return [10, 16]
