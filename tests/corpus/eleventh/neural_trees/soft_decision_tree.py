"""Soft decision tree: log probabilities of classes."""

import torch
from neural_trees.decision_trees.soft_decision_tree import _SoftTreeModule
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = _SoftTreeModule(n_features=10, n_classes=4, depth=5, penalty_coef=0.01)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(32, 10)]


def get_init_inputs():
    return []
