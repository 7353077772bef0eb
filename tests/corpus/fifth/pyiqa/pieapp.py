"""PieAPP: the error between two images, from overlapping patches, weighted by their features."""

import torch
from pyiqa.archs.pieapp_arch import PieAPP


class Model(torch.nn.Module):
    def __init__(self, stride):
        super().__init__()
        self.net = PieAPP(patch_size=64, stride=stride, pretrained=False)

    def forward(self, distorted, reference):
        return self.net(distorted, reference)


def get_inputs():
    image = torch.rand(1, 3, 96, 96)
    return [(image + torch.randn_like(image) * 0.1).clamp(0, 1), image]


def get_init_inputs():
    return [16]
