"""MONAI's V-Net: residual sums over doubled channels, ELU."""

import torch
from monai.networks.nets import VNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = VNet(spatial_dims=2, in_channels=1, out_channels=2)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 1, 64, 64)]


def get_init_inputs():
    return []
