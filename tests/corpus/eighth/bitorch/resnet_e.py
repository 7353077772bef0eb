"""ResNet-E18 with binary convolutions from bitorch."""

import torch
from bitorch.models import ResnetE18
from torch import nn


class Model(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.model = ResnetE18(input_shape=shape, num_classes=classes)

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [[1, 3, 64, 64], 10]
