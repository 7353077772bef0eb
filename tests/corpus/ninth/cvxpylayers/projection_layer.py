"""Network whose last layer solves a quadratic programme, from cvxpylayers."""

import cvxpy as cp
import torch
from cvxpylayers.torch import CvxpyLayer
from torch import nn


class Model(nn.Module):
    def __init__(self, features, assets):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, assets))
        self.root = nn.Parameter(torch.eye(assets) + 0.1 * torch.randn(assets, assets))
        weights = cp.Variable(assets)
        returns = cp.Parameter(assets)
        root = cp.Parameter((assets, assets))
        problem = cp.Problem(
            cp.Minimize(cp.sum_squares(root @ weights) - returns @ weights),
            [cp.sum(weights) == 1, weights >= 0],
        )
        self.layer = CvxpyLayer(problem, parameters=[returns, root], variables=[weights])

    def forward(self, x):
        returns = self.net(x)
        (weights,) = self.layer(returns, self.root)
        return returns, weights


def get_inputs():
    return [torch.randn(4, 10)]


def get_init_inputs():
    return [10, 8]
