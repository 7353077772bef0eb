"""LassoNet on a table: a perceptron beside a sparse linear skip over the same features."""

import torch
from lassonet.model import LassoNet


class Model(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.net = LassoNet(features, 128, 64, classes, dropout=0.1)
        self.net.prox(lambda_=0.02, M=10)

    def forward(self, x):
        return self.net(x).softmax(dim=-1)


def get_inputs():
    return [torch.randn(64, 60)]


def get_init_inputs():
    return [60, 7]
