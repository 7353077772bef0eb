"""A Gaussian mixture of pomegranate: log-probability and responsibilities of every row."""

import torch
from pomegranate.distributions import Normal
from pomegranate.gmm import GeneralMixtureModel


class Model(torch.nn.Module):
    def __init__(self, components, features):
        super().__init__()
        parts = [
            Normal(torch.randn(features), torch.rand(features) + 0.5, covariance_type="diag")
            for _ in range(components)
        ]
        self.model = GeneralMixtureModel(parts, priors=torch.rand(components).softmax(dim=0))

    def forward(self, rows):
        return self.model.log_probability(rows), self.model.predict_proba(rows)


def get_inputs():
    return [torch.randn(256, 12)]


def get_init_inputs():
    return [6, 12]
