"""DIRESA: a distance-regularised siamese twin autoencoder of atmospheric fields."""

import torch
from diresa_torch.arch.models import Diresa
from torch import nn


class Model(nn.Module):
    def __init__(self, shape, filters):
        super().__init__()
        self.model = Diresa.from_hyper_param(
            input_shape=shape, stack=(2, 1), stack_filters=filters, dense_units=(40, 10)
        )

    def forward(self, x, twin):
        return self.model(x, twin)


def get_inputs():
    return [torch.randn(4, 1, 32, 64), torch.randn(4, 1, 32, 64)]


def get_init_inputs():
    return [(1, 32, 64), (16, 8)]
