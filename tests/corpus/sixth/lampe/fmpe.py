"""Flow matching posterior estimation of lampe: a velocity field, and a few Euler steps from
noise to parameters."""

import torch
from lampe.inference import FMPE


class Model(torch.nn.Module):
    def __init__(self, parameters, observed, steps):
        super().__init__()
        self.estimator = FMPE(parameters, observed, freqs=5, hidden_features=[128] * 4)
        self.steps = steps

    def forward(self, noise, x):
        theta = noise
        for step in range(self.steps):
            time = torch.full(theta.shape[:1], 1 - step / self.steps)
            theta = theta - self.estimator(theta, x, time) / self.steps
        return theta


def get_inputs():
    return [torch.randn(64, 5), torch.randn(64, 20)]


def get_init_inputs():
    return [5, 20, 6]
