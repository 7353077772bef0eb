"""Bit diffusion: U-Net on the bits of an image with self-conditioning."""

import torch
from bit_diffusion import Unet
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Unet(dim=16, dim_mults=(1, 2, 4), channels=1)

    def forward(self, x, time):
        return self.model(x, time)


def get_inputs():
    return [torch.randn(1, 8, 32, 32), torch.rand(1)]


def get_init_inputs():
    return []
