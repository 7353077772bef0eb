"""Pyro: a linear state space model as one distribution, the log-likelihood of series by a parallel
scan of Gaussians, and the filtered state at the end."""

import torch
from pyro.distributions import GaussianHMM, MultivariateNormal


class Model(torch.nn.Module):
    def __init__(self, hidden, observed):
        super().__init__()
        self.transition = torch.nn.Parameter(
            torch.eye(hidden) * 0.9 + 0.05 * torch.randn(hidden, hidden)
        )
        self.observation = torch.nn.Parameter(torch.randn(hidden, observed))
        self.noise = torch.nn.Parameter(torch.zeros(hidden))
        self.error = torch.nn.Parameter(torch.zeros(observed))

    def forward(self, series):
        hidden, observed = self.observation.shape
        noise = MultivariateNormal(torch.zeros(hidden), scale_tril=self.noise.exp().diag())
        error = MultivariateNormal(torch.zeros(observed), scale_tril=self.error.exp().diag())
        start = MultivariateNormal(torch.zeros(hidden), torch.eye(hidden))
        model = GaussianHMM(
            start, self.transition, noise, self.observation, error, duration=series.shape[-2]
        )
        last = model.filter(series)
        return model.log_prob(series), last.mean, last.covariance_matrix


def get_inputs():
    return [torch.randn(4, 50, 3)]


def get_init_inputs():
    return [6, 3]
