"""MODNet for portrait mattes: MobileNetV2, half instance and half batch norms, and branches for
meaning, detail and their fusion."""

import torch
from facexlib.matting.modnet import MODNet


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = MODNet(in_channels=channels, hr_channels=32, backbone_pretrained=False)

    def forward(self, image):
        return self.net(image, False)


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return [3]
