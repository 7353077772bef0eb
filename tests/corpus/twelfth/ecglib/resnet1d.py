"""One-dimensional ResNet for electrocardiograms."""

import torch
from ecglib.models.architectures.resnet1d import resnet1d18
from torch import nn


class Model(nn.Module):
    def __init__(self, leads, classes):
        super().__init__()
        self.model = resnet1d18(input_channels=leads, num_classes=classes)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 12, 256)]


def get_init_inputs():
    return [12, 5]
