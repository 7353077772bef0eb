"""Tiramisu: a fully convolutional DenseNet for segmentation."""

import torch
from models.tiramisu import Tiramisu
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.model = Tiramisu(
            channels,
            classes,
            init_conv_filters=24,
            structure=([3, 3, 3], 3, [3, 3, 3]),
            growth_rate=8,
        )

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [3, 5]
