"""Normalising flow of spline couplings and actnorm: inverse and log determinant."""

import torch
from antsnormflows.flows.mixing import LULinearPermute
from antsnormflows.flows.neural_spline.wrapper import CoupledRationalQuadraticSpline
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.flows = nn.ModuleList(
            [
                m
                for _ in range(3)
                for m in (CoupledRationalQuadraticSpline(6, 2, 32), LULinearPermute(6))
            ]
        )

    def forward(self, x):
        total = x.new_zeros(x.shape[0])
        for flow in self.flows:
            x, log_det = flow(x)
            total = total + log_det
        return x, total


def get_inputs():
    return [torch.randn(32, 6)]


def get_init_inputs():
    return []
