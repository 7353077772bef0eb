"""torchvision's SSDlite without its last step: features, anchors' scores and boxes."""

import torch
from torchvision.models.detection import ssdlite320_mobilenet_v3_large


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        net = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
        self.backbone, self.head = net.backbone, net.head

    def forward(self, image):
        features = list(self.backbone(image).values())
        return self.head(features)


def get_inputs():
    return [torch.rand(1, 3, 160, 160)]


def get_init_inputs():
    return []
