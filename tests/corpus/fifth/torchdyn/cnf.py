"""Continuous normalizing flow: log-likelihoods by the exact trace along an augmented ODE."""

import torch
from torchdyn.core import NeuralODE
from torchdyn.models import CNF
from torchdyn.nn import Augmenter


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        field = torch.nn.Sequential(
            torch.nn.Linear(4, width),
            torch.nn.Softplus(),
            torch.nn.Linear(width, width),
            torch.nn.Tanh(),
            torch.nn.Linear(width, 4),
        )
        ode = NeuralODE(CNF(field), solver="rk4", sensitivity="autograd", interpolator=None)
        self.augment = Augmenter(augment_idx=1, augment_dims=1)
        self.ode = ode

    def forward(self, x):
        with torch.enable_grad():
            x = self.augment(x.requires_grad_())
            state = self.ode(x, torch.linspace(0, 1, 6))[1][-1]
        base = torch.distributions.Normal(0.0, 1.0)
        return base.log_prob(state[:, 1:]).sum(1) - state[:, 0], state


def get_inputs():
    return [torch.randn(64, 4)]


def get_init_inputs():
    return [64]
