"""U-Net for medical volumes with a time embedding."""

import torch
from medimm.models.unet_3d import UNet3d, UNet3dConfig
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = UNet3d(UNet3dConfig())

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 1, 32, 32, 32)]


def get_init_inputs():
    return []
