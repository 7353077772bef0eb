"""Hierarchical mixture of experts."""

import torch
from neural_trees.mixture_of_experts.hierarchical_moe import _HMoEModule
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = _HMoEModule(
            n_features=10,
            n_classes=4,
            depth=2,
            branching_factor=3,
            gate_hidden=16,
            expert_hidden=32,
            dropout_rate=0.1,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(32, 10)]


def get_init_inputs():
    return []
