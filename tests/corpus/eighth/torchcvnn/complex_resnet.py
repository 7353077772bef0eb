"""Convolutional network of complex values from torchcvnn's layers, for radar images."""

import torch
import torchcvnn.nn as c
from torch import nn


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        complex64 = {"dtype": torch.complex64}
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, **complex64),
            c.BatchNorm2d(width),
            c.modReLU(),
            c.AvgPool2d(2, 2),
            nn.Conv2d(width, 2 * width, 3, padding=1, **complex64),
            c.BatchNorm2d(2 * width),
            c.Cardioid(),
            c.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, **complex64),
            c.zReLU(),
            nn.Flatten(),
            nn.Linear(2 * width * 64, classes, **complex64),
            c.Mod(),
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(4, 1, 32, 32, dtype=torch.complex64)]


def get_init_inputs():
    return [16, 10]
