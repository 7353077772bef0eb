"""FlowConductor: the Lipschitz-constrained DenseNet of an invertible residual flow."""

import torch
from flowcon.nn.nets.invertible_densenet import DenseNet
from torch import nn


class Model(nn.Module):
    def __init__(self, dimension, depth, growth):
        super().__init__()
        self.model = DenseNet(dimension, densenet_depth=depth, densenet_growth=growth)

    def forward(self, x):
        return x + self.model(x)


def get_inputs():
    return [torch.randn(32, 12)]


def get_init_inputs():
    return [12, 3, 32]
