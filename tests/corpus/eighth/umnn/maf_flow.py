"""Unconstrained monotonic autoregressive flow from the package UMNN."""

import torch
from torch import nn
from UMNN import UMNNMAFFlow


class Model(nn.Module):
    def __init__(self, flows, dim):
        super().__init__()
        self.model = UMNNMAFFlow(
            nb_flow=flows,
            nb_in=dim,
            hidden_derivative=[64, 64],
            hidden_embedding=[128, 128],
            embedding_s=16,
            nb_steps=20,
            solver="CCParallel",
        )

    def forward(self, x):
        log_prob, z = self.model.compute_ll(x)
        return log_prob, z


def get_inputs():
    return [torch.randn(16, 6)]


def get_init_inputs():
    return [3, 6]
