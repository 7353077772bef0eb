"""YOLOX-tiny: CSP darknet, PAFPN, decoupled anchor-free head, boxes decoded."""

import torch
from yolox.models import YOLOPAFPN, YOLOX, YOLOXHead


class Model(torch.nn.Module):
    def __init__(self, depth, width, classes):
        super().__init__()
        channels = [256, 512, 1024]
        self.net = YOLOX(
            YOLOPAFPN(depth, width, in_channels=channels),
            YOLOXHead(classes, width, in_channels=channels),
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 160, 224)]


def get_init_inputs():
    return [0.33, 0.375, 80]
