"""Basenji2: DNA sequence to tracks, small."""

import torch
from basenji2_pytorch.model import Basenji2
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        trunk = [
            {"name": "conv_block", "filters": 32, "kernel_size": 15, "pool_size": 2},
            {
                "name": "conv_tower",
                "filters_init": 36,
                "filters_mult": 1.2,
                "kernel_size": 5,
                "pool_size": 2,
                "repeat": 3,
            },
            {
                "name": "dilated_residual",
                "filters": 24,
                "rate_mult": 1.5,
                "repeat": 3,
                "dropout": 0.3,
            },
            {"name": "Cropping1D", "cropping": 4},
            {"name": "conv_block", "filters": 64, "dropout": 0.05},
        ]
        self.model = Basenji2(
            {
                "seq_length": 1024,
                "activation": "gelu",
                "norm_type": "batch",
                "bn_momentum": 0.9,
                "padding": "same",
                "trunk": trunk,
                "head_human": {"name": "final", "units": 20, "activation": "softplus"},
            }
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 4, 1024)]


def get_init_inputs():
    return []
