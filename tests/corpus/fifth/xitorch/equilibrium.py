"""xitorch: equilibrium of a small net, a linear solve, the lowest eigenpairs and a spline."""

import torch
from xitorch import LinearOperator
from xitorch.interpolate import Interp1D
from xitorch.linalg import solve, symeig
from xitorch.optimize import equilibrium


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size, size) / size)
        self.bias = torch.nn.Parameter(torch.randn(size))

    def step(self, y, weight, bias, x):
        return torch.tanh(y @ weight + bias + x)

    def forward(self, x):
        parameters = (self.weight, self.bias, x)
        y = equilibrium(self.step, torch.zeros_like(x), parameters, method="anderson_acc")
        matrix = self.weight @ self.weight.T + torch.eye(len(self.bias)) * 2
        operator = LinearOperator.m(matrix, is_hermitian=True)
        solution = solve(operator, y.T)
        values, vectors = symeig(operator, neig=4, mode="lowest")
        knots = torch.linspace(0, 1, y.shape[1])
        fine = Interp1D(knots, y, method="cspline")(torch.linspace(0, 1, 100))
        return solution, values, vectors.abs(), fine


def get_inputs():
    return [torch.randn(8, 40)]


def get_init_inputs():
    return [40]
