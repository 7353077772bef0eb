"""Densely connected network for tabular data."""

import torch
from lightautoml.ml_algo.torch_based.nn_models import DenseModel
from torch import nn


class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.model = DenseModel(
            n_in, n_out, block_config=[2, 2], growth_size=32, num_init_features=32
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(8, 20)]


def get_init_inputs():
    return [20, 3]
