"""torchvision's LR-ASPP over MobileNetV3: segmentation with two heads of features."""

import torch
from torchvision.models.segmentation import lraspp_mobilenet_v3_large


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
