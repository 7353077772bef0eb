"""Complex-valued convolutional classifier."""

import torch
from cplxmodule import cplx
from cplxmodule.nn import CplxBatchNorm1d, CplxConv1d, CplxLinear, CplxModReLU
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = CplxConv1d(2, 16, 5, padding=2)
        self.norm1 = CplxBatchNorm1d(16)
        self.act = CplxModReLU()
        self.conv2 = CplxConv1d(16, 32, 5, stride=2)
        self.head = CplxLinear(32 * 30, 10)

    def forward(self, real, imag):
        z = self.act(self.norm1(self.conv1(cplx.Cplx(real, imag))))
        z = self.act(self.conv2(z))
        return abs(self.head(z.reshape(z.shape[0], -1)))


def get_inputs():
    return [torch.randn(4, 2, 64), torch.randn(4, 2, 64)]


def get_init_inputs():
    return []
