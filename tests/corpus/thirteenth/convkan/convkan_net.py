"""A convolutional Kolmogorov-Arnold network."""

import torch
from convkan import ConvKAN, LayerNorm2D
from torch import nn


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.model = nn.Sequential(
            ConvKAN(3, width, padding=1, kernel_size=3, stride=2),
            LayerNorm2D(width),
            ConvKAN(width, width, padding=1, kernel_size=3, stride=2),
            LayerNorm2D(width),
            ConvKAN(width, classes, kernel_size=3),
            nn.AdaptiveAvgPool2d((1, 1)),
            nn.Flatten(),
        )

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.randn(2, 3, 24, 24)]


def get_init_inputs():
    return [16, 10]
