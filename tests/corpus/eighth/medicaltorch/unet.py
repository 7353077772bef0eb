"""medicaltorch's U-Net for slices of the spinal cord."""

import torch
from medicaltorch.models import Unet
from torch import nn


class Model(nn.Module):
    def __init__(self, drop):
        super().__init__()
        self.model = Unet(drop_rate=drop)

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(1, 1, 96, 96)]


def get_init_inputs():
    return [0.4]
