"""FarSeg: a ResNet with a feature pyramid, whose scene embedding weighs every level's
foreground."""

import torch
from torchgeo.models import FarSeg


class Model(torch.nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.net = FarSeg(backbone, classes, backbone_pretrained=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return ["resnet18", 16]
