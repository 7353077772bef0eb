"""CRAFT text detector: VGG16 with batch norm and a U-shaped decoder."""

import torch
import torchvision.models.vgg as vgg
from torch import nn

if not hasattr(vgg, "model_urls"):
    vgg.model_urls = {"vgg16_bn": "https://download.pytorch.org/models/vgg16_bn-6c64b313.pth"}

from craft_text_detector.models.craftnet import CraftNet


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = CraftNet(pretrained=False, freeze=False)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
