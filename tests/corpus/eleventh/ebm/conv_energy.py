"""Energy-based model: a spectrally normalised convolutional energy."""

import torch
from ebm.nets import ConvEnergy
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ConvEnergy(in_channels=3, channels=(32, 64, 64, 64))

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 3, 32, 32)]


def get_init_inputs():
    return []
