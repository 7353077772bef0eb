"""Gated delta network mixer, reference backend."""

import torch
from opengdn import GatedDeltaMixer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(128)
        self.mixer = GatedDeltaMixer(128, 4, backend="reference")

    def forward(self, x):
        return x + self.mixer(self.norm(x))


def get_inputs():
    return [torch.randn(2, 64, 128)]


def get_init_inputs():
    return []
