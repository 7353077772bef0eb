"""HyperFast: a hypernetwork makes the weights of a classifier from a labelled table."""

from types import SimpleNamespace

import torch
from hyperfast.model import HyperFast
from torch import nn


class Model(nn.Module):
    def __init__(self, dims, classes):
        super().__init__()
        cfg = SimpleNamespace(
            n_dims=dims,
            max_categories=10,
            rf_size=2**10,
            torch_pca=True,
            clip_data_value=27.6,
            hn_n_layers=3,
            hn_hidden_size=128,
            main_n_layers=3,
        )
        self.model = HyperFast(cfg)
        self.classes = classes

    def forward(self, x, y):
        _rf, _pca, main, _bias = self.model(x, y, self.classes)
        return [tensor for layer in main for tensor in layer if isinstance(tensor, torch.Tensor)]


def get_inputs():
    return [torch.randn(120, 20), torch.randint(0, 4, (120,))]


def get_init_inputs():
    return [64, 4]
