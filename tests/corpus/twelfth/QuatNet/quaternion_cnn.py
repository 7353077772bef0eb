"""Quaternion convolutional classifier."""

import torch
from QuatNet.quaternion_layers import QuaternionConv2d, QuaternionLinear
from torch import nn


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            QuaternionConv2d(4, 32, kernel_size=3, stride=1, padding=1, weight_init="unitary"),
            nn.ReLU(),
            nn.MaxPool2d(2),
            QuaternionConv2d(32, 64, kernel_size=3, stride=2, padding=1, weight_init="unitary"),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.hidden = QuaternionLinear(256, 64, weight_init="unitary")
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(self.features(x).flatten(1))))


def get_inputs():
    return [torch.randn(2, 4, 24, 24)]


def get_init_inputs():
    return [10]
