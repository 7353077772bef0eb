"""DVC: deep video compression with a pyramid flow estimator and motion compensation."""

import torch
from neuralcompression.models import DVC
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.model = DVC(coder_channels=channels)

    def forward(self, image1, image2):
        return self.model(image1, image2)


def get_inputs():
    return [torch.rand(1, 3, 64, 64), torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [64]
