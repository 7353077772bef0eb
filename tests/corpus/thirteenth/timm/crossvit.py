"""timm: CrossViT tiny, two scales of patches with cross attention."""

import timm
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, name, classes):
        super().__init__()
        self.model = timm.create_model(name, pretrained=False, num_classes=classes)

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.rand(1, 3, 240, 240)]


def get_init_inputs():
    return ["crossvit_tiny_240", 100]
