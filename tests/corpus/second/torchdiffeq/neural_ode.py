"""A neural ODE: 10 steps of Runge-Kutta over a small vector field."""

import torch
from torchdiffeq import odeint


class Field(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(dim, 50), torch.nn.Tanh(), torch.nn.Linear(50, dim)
        )

    def forward(self, t, y):
        return self.net(y**3) * torch.cos(t)


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.field = Field(dim)

    def forward(self, y, times):
        return odeint(self.field, y, times, method="rk4")


def get_inputs():
    return [torch.randn(16, 4), torch.linspace(0.0, 1.0, 11)]


def get_init_inputs():
    return [4]
