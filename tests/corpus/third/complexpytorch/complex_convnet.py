"""Complex-valued network: complex convolutions, whitening batch norm, magnitude pooling, linear."""

import itertools

import torch
from complexPyTorch.complexFunctions import complex_max_pool2d, complex_relu
from complexPyTorch.complexLayers import (
    ComplexBatchNorm1d,
    ComplexBatchNorm2d,
    ComplexConv2d,
    ComplexConvTranspose2d,
    ComplexLinear,
)


class Model(torch.nn.Module):
    def __init__(self, widths, classes):
        super().__init__()
        pairs = itertools.pairwise(widths)
        self.convolutions = torch.nn.ModuleList(ComplexConv2d(a, b, 3, padding=1) for a, b in pairs)
        self.norms = torch.nn.ModuleList(ComplexBatchNorm2d(b) for b in widths[1:])
        self.up = ComplexConvTranspose2d(widths[-1], widths[1], 2, stride=2)
        self.hidden = ComplexLinear(widths[-1] * 16, 128)
        self.norm = ComplexBatchNorm1d(128)
        self.head = ComplexLinear(128, classes)

    def forward(self, signal):
        hidden = signal
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            hidden = complex_max_pool2d(complex_relu(norm(convolution(hidden))), 2, 2)
        features = complex_relu(self.norm(self.hidden(hidden.flatten(1))))
        return self.head(features).abs().log_softmax(-1), self.up(hidden).abs()


def get_inputs():
    return [torch.randn(4, 2, 32, 32, dtype=torch.complex64)]


def get_init_inputs():
    return [[2, 16, 32, 64], 10]
