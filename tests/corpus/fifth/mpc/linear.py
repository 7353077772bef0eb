"""Differentiable MPC: the controls within bounds that cost least under linear dynamics (iLQR)."""

import torch
from mpc.mpc import MPC, GradMethods, LinDx, QuadCost


class Model(torch.nn.Module):
    def __init__(self, horizon):
        super().__init__()
        self.horizon = horizon
        self.dynamics = torch.nn.Parameter(torch.eye(4, 6) + 0.1 * torch.randn(4, 6))
        self.weights = torch.nn.Parameter(torch.rand(6))
        self.solver = MPC(
            n_state=4,
            n_ctrl=2,
            T=horizon,
            u_lower=-1.0,
            u_upper=1.0,
            lqr_iter=5,
            verbose=-1,
            grad_method=GradMethods.ANALYTIC,
            exit_unconverged=False,
            backprop=False,
        )

    def forward(self, state, goal):
        count = state.shape[0]
        cost = torch.diag(0.1 + self.weights.exp()).expand(self.horizon, count, 6, 6)
        linear = torch.nn.functional.pad(-goal, (0, 2)).expand(self.horizon, count, 6)
        dynamics = self.dynamics.expand(self.horizon - 1, count, 4, 6)
        return self.solver(state, QuadCost(cost, linear), LinDx(dynamics))


def get_inputs():
    return [torch.randn(4, 4), torch.randn(4, 4)]


def get_init_inputs():
    return [8]
