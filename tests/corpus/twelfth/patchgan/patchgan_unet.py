"""U-Net generator of PatchGAN for segmentation."""

import torch
from patchgan import UNet
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.model = UNet(channels, classes, nf=8)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 3, 256, 256)]


def get_init_inputs():
    return [3, 4]
