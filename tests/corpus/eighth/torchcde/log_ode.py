"""Log-signature windows of torchcde with missing values, before a small network."""

import torch
import torchcde
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, times):
        super().__init__()
        self.times = times
        self.net = nn.GRU(2 * channels, 64, batch_first=True)

    def forward(self, series):
        coefficients = torchcde.linear_interpolation_coeffs(series)
        path = torchcde.LinearInterpolation(coefficients)
        t = torch.linspace(0.0, series.shape[1] - 1.0, self.times)
        points = path.evaluate(t)
        return self.net(
            torch.cat([points, path.derivative(t[0]).unsqueeze(1).expand_as(points)], -1)
        )[0]


def get_inputs():
    series = torch.randn(3, 24, 4)
    series[:, 5:8, 1] = float("nan")
    return [series]


def get_init_inputs():
    return [4, 40]
