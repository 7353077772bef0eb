"""1-Lipschitz classifier of almost orthogonal layers, from orthogonium."""

import torch
from orthogonium.layers import MaxMin
from orthogonium.layers.conv.AOL.aol import AOLConv2D
from orthogonium.layers.conv.SLL.sll_layer import SDPBasedLipschitzDense
from torch import nn


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.model = nn.Sequential(
            AOLConv2D(3, width, kernel_size=3, padding=1),
            MaxMin(),
            AOLConv2D(width, 2 * width, kernel_size=3, stride=2, padding=1),
            MaxMin(),
            AOLConv2D(2 * width, 4 * width, kernel_size=3, stride=2, padding=1),
            MaxMin(),
            nn.AvgPool2d(8, divisor_override=8),
            nn.Flatten(),
            SDPBasedLipschitzDense(4 * width, 4 * width, 128),
            nn.Linear(4 * width, classes),
        )

    def forward(self, images):
        return self.model(images)


def get_inputs():
    return [torch.randn(4, 3, 32, 32)]


def get_init_inputs():
    return [16, 10]
