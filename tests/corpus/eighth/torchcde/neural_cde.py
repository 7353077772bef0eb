"""Neural controlled differential equation of torchcde along a spline."""

import torch
import torchcde
from torch import nn


class Field(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.channels, self.hidden = channels, hidden
        self.net = nn.Sequential(
            nn.Linear(hidden, 96), nn.ReLU(), nn.Linear(96, channels * hidden), nn.Tanh()
        )

    def forward(self, t, z):
        return self.net(z).view(*z.shape[:-1], self.hidden, self.channels)


class Model(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.start = nn.Linear(channels, hidden)
        self.field = Field(channels, hidden)
        self.head = nn.Linear(hidden, 3)

    def forward(self, series):
        path = torchcde.CubicSpline(
            torchcde.hermite_cubic_coefficients_with_backward_differences(series)
        )
        z = torchcde.cdeint(
            X=path,
            z0=self.start(path.evaluate(path.interval[0])),
            func=self.field,
            t=path.interval,
            method="rk4",
            options={"step_size": 1.0},
        )
        return self.head(z[:, -1])


def get_inputs():
    return [torch.randn(4, 20, 5).cumsum(1)]


def get_init_inputs():
    return [5, 32]
