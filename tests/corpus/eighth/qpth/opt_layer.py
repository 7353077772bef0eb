"""Network with a layer that solves a quadratic programme, from qpth."""

import torch
from qpth.qp import QPFunction
from torch import nn


class Model(nn.Module):
    def __init__(self, features, variables, constraints):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, variables))
        self.root = nn.Parameter(torch.tril(torch.rand(variables, variables)))
        self.rows = nn.Parameter(torch.randn(constraints, variables))
        self.slack = nn.Parameter(torch.ones(constraints))

    def forward(self, x):
        quadratic = self.root @ self.root.t() + 1e-2 * torch.eye(self.root.shape[0])
        none = torch.empty(0)
        return QPFunction(verbose=-1)(quadratic, self.body(x), self.rows, self.slack, none, none)


def get_inputs():
    return [torch.randn(8, 20)]


def get_init_inputs():
    return [20, 12, 16]
