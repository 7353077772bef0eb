"""DenseNet-121."""

import torch
from densenet_pytorch import DenseNet
from torch import nn


class Model(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.model = DenseNet.from_name(name)

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return ["densenet121"]
