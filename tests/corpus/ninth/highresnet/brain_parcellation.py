"""HighRes3DNet for the parcellation of a brain volume, from highresnet."""

import torch
from highresnet import HighRes3DNet
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.model = HighRes3DNet(channels, classes, initial_out_channels_power=3)

    def forward(self, volume):
        return self.model(volume).softmax(1)


def get_inputs():
    return [torch.randn(1, 1, 32, 32, 32)]


def get_init_inputs():
    return [1, 20]
