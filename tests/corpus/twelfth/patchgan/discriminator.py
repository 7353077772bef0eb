"""Patch discriminator of PatchGAN."""

import torch
from patchgan import Discriminator
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.model = Discriminator(channels, ndf=16, n_layers=3)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 6, 96, 96)]


def get_init_inputs():
    return [6]
