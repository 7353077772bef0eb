"""XceptionTime of tsai: separable convolutions of several lengths, residual shortcuts, adaptive
pooling."""

import torch
from tsai.models.XceptionTime import XceptionTime


class Model(torch.nn.Module):
    def __init__(self, features, classes, width):
        super().__init__()
        self.net = XceptionTime(features, classes, nf=width)

    def forward(self, series):
        return self.net(series)


def get_inputs():
    return [torch.randn(4, 5, 120)]


def get_init_inputs():
    return [5, 6, 16]
