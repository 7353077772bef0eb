"""Perceptron on periodic and on piecewise linear embeddings, from rtdl_num_embeddings."""

import torch
from rtdl_num_embeddings import (
    PeriodicEmbeddings,
    PiecewiseLinearEmbeddings,
    compute_bins,
)
from torch import nn


class Model(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.periodic = PeriodicEmbeddings(features, width, lite=False)
        bins = compute_bins(torch.randn(1000, features), n_bins=16)
        self.piecewise = PiecewiseLinearEmbeddings(bins, width, activation=False, version="B")
        self.mlp = nn.Sequential(
            nn.Linear(2 * features * width, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 1)
        )

    def forward(self, x):
        x = torch.cat([self.periodic(x).flatten(1), self.piecewise(x).flatten(1)], 1)
        return self.mlp(x)


def get_inputs():
    return [torch.randn(128, 12)]


def get_init_inputs():
    return [12, 24]
