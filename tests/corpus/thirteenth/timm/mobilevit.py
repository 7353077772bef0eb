"""timm: MobileViT v2 0.5."""

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
    return [torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return ["mobilevitv2_050", 100]
