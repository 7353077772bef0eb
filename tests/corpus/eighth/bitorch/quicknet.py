"""QuickNet with binary weights and activations from bitorch."""

import torch
from bitorch.models import QuickNetSmall
from torch import nn


class Model(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.model = QuickNetSmall(input_shape=shape, num_classes=classes)

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.rand(1, 3, 96, 96)]


def get_init_inputs():
    return [[1, 3, 96, 96], 100]
