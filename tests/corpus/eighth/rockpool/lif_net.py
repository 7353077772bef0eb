"""Layers of leaky integrate-and-fire neurons of rockpool."""

import torch
from rockpool.nn.combinators import Sequential
from rockpool.nn.modules import ExpSynTorch, LIFTorch, LinearTorch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.model = Sequential(
            LinearTorch((inputs, hidden), has_bias=False),
            LIFTorch(hidden, dt=1e-3),
            LinearTorch((hidden, hidden), has_bias=False),
            LIFTorch(hidden, dt=1e-3),
            LinearTorch((hidden, classes), has_bias=False),
            ExpSynTorch(classes, dt=1e-3),
        )

    def forward(self, spikes):
        self.model.reset_state()
        out, _, _ = self.model(spikes)
        return out


def get_inputs():
    return [(torch.rand(4, 60, 32) < 0.3).float()]


def get_init_inputs():
    return [32, 96, 10]
