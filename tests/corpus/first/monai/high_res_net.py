"""MONAI's HighResNet: dilated residual blocks at full resolution."""

import torch
from monai.networks.nets import HighResNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = HighResNet(spatial_dims=3, in_channels=1, out_channels=4)

    def forward(self, volume):
        return self.net(volume)


def get_inputs():
    return [torch.randn(1, 1, 24, 24, 24)]


def get_init_inputs():
    return []
