"""Depth-varying neural ODE: a Galerkin layer's weights are Fourier series of the depth."""

import torch
from torchdyn.core import NeuralODE
from torchdyn.nn import DataControl, DepthCat, Fourier, GalLinear


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        field = torch.nn.Sequential(
            DataControl(),
            DepthCat(1),
            torch.nn.Linear(17, width),
            torch.nn.Tanh(),
            DepthCat(1),
            GalLinear(width, 8, expfunc=Fourier(5)),
        )
        self.net = NeuralODE(field, solver="dopri5", atol=1e-4, rtol=1e-4, return_t_eval=False)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.net(x, torch.linspace(0, 1, 4)))


def get_inputs():
    return [torch.randn(32, 8)]


def get_init_inputs():
    return [48]
