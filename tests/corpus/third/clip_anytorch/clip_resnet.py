"""CLIP's modified ResNet: three-layer stem, antialiased strides and an attention pooling head."""

import torch
from clip.model import ModifiedResNet


class Model(torch.nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.net = ModifiedResNet(layers, 512, heads=8, input_resolution=160, width=width)

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(2, 3, 160, 160)]


def get_init_inputs():
    return [[3, 4, 6, 3], 48]
