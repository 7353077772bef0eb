"""ResNet-18 for volumes."""

import timm_3d
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = timm_3d.create_model("resnet18", pretrained=False, num_classes=5, in_chans=1)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 1, 32, 32, 32)]


def get_init_inputs():
    return []
