"""Glaucus: an autoencoder of radio signals built from G-blocks."""

import torch
from glaucus import GlaucusAE
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.model = GlaucusAE(spatial_size=size, bottleneck_latent=256, bottleneck_steps=2)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 2, 4096)]


def get_init_inputs():
    return [4096]
