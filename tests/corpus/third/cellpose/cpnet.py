"""Cellpose's network: residual U-Net whose global style vector steers every decoder block."""

import torch
from cellpose.resnet_torch import CPnet


class Model(torch.nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.net = CPnet(widths, 3, 3, diam_mean=30.0)

    def forward(self, image):
        flows, style, features = self.net(image)
        return flows, style, features[-1]


def get_inputs():
    return [torch.rand(2, 2, 224, 224)]


def get_init_inputs():
    return [[2, 32, 64, 128, 256]]
