"""BiSeNet of pixseg on a ResNet-18: a spatial path and a context path, fused."""

import torch
from pixseg.models.bisenet import bisenet_resnet18


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.model = bisenet_resnet18(num_classes=classes, weights=None, weights_backbone=None)

    def forward(self, image):
        return self.model(image)["out"]


def get_inputs():
    return [torch.randn(1, 3, 224, 224)]


def get_init_inputs():
    return [19]
