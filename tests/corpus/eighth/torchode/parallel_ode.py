"""Neural ODE solved for every sample with its own step size by torchode."""

import torch
import torchode as to
from torch import nn


class Field(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, hidden), nn.Tanh(), nn.Linear(hidden, dim))

    def forward(self, t, y):
        return self.net(torch.cat([y, t[:, None]], -1))


class Model(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        term = to.ODETerm(Field(dim, hidden))
        method = to.Dopri5(term=term)
        controller = to.IntegralController(atol=1e-4, rtol=1e-3, term=term)
        self.solver = to.AutoDiffAdjoint(method, controller)

    def forward(self, start, times):
        out = self.solver.solve(to.InitialValueProblem(y0=start, t_eval=times))
        return out.ys, out.status


def get_inputs():
    return [torch.randn(6, 5), torch.linspace(0, 2, 12).repeat(6, 1)]


def get_init_inputs():
    return [5, 64]
