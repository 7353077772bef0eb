"""Link refiner of the CRAFT text detector: convolutions and four dilated branches."""

import torch
import torchvision.models.vgg as vgg
from torch import nn

if not hasattr(vgg, "model_urls"):
    vgg.model_urls = {"vgg16_bn": "https://download.pytorch.org/models/vgg16_bn-6c64b313.pth"}

from craft_text_detector.models.refinenet import RefineNet


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = RefineNet()

    def forward(self, y, upconv4):
        return self.model(y, upconv4)


def get_inputs():
    return [torch.randn(1, 48, 48, 2), torch.randn(1, 32, 48, 48)]


def get_init_inputs():
    return []
