"""SRResNet: residual network with pixel shuffle for super-resolution."""

import torch
from torch import nn
from torch_enhance.models import SRResNet


class Model(nn.Module):
    def __init__(self, scale_factor):
        super().__init__()
        self.model = SRResNet(scale_factor, num_blocks=4)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.rand(1, 3, 24, 24)]


def get_init_inputs():
    return [2]
