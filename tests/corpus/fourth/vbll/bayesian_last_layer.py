"""Variational Bayesian last layers on one residual network: a regression with a low-rank covariance
and a classifier; means, variances, class probabilities and a score of novelty."""

import torch
import vbll
from torch import nn


class Model(nn.Module):
    def __init__(self, features, width, classes):
        super().__init__()
        self.first = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ELU()) for _ in range(4)
        )
        self.regression = vbll.Regression(width, 2, 0.01, parameterization="lowrank", cov_rank=4)
        self.classes = vbll.DiscClassification(
            width, classes, 0.01, parameterization="dense", return_ood=True
        )

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        value = self.regression(x).predictive
        kind = self.classes(x)
        return value.mean, value.variance, kind.predictive.probs, kind.ood_scores


def get_inputs():
    return [torch.randn(16, 12)]


def get_init_inputs():
    return [12, 64, 5]
