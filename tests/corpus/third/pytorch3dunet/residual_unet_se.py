"""Volumetric U-Net with residual blocks, group norm and squeeze-and-excitation over channels and
space; five levels, joined by addition."""

import torch
from pytorch3dunet.unet3d.model import ResidualUNetSE3D


class Model(torch.nn.Module):
    def __init__(self, inside, outside, maps):
        super().__init__()
        self.net = ResidualUNetSE3D(inside, outside, f_maps=maps, num_levels=5)

    def forward(self, volume):
        return self.net(volume)


def get_inputs():
    return [torch.randn(1, 1, 32, 32, 32)]


def get_init_inputs():
    return [1, 2, 16]
