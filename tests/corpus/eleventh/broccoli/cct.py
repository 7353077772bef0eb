"""Compact convolutional transformer with rotary positions."""

import torch
from broccoli.vit import ViT
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ViT(input_size=(32, 32), image_classes=100)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs():
    return []
