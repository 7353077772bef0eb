"""deepCR's U-Net that marks cosmic rays in an astronomical image."""

import torch
from deepCR.unet import UNet2Sigmoid
from torch import nn


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.model = UNet2Sigmoid(1, 1, hidden)

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(1, 1, 128, 128)]


def get_init_inputs():
    return [32]
