"""Mixture density network on top of a small perceptron."""

import torch
from mixture_density_nets import MDN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.model = MDN(64, 3, 5)

    def forward(self, x):
        return self.model(self.body(x))


def get_inputs():
    return [torch.randn(32, 6)]


def get_init_inputs():
    return []
