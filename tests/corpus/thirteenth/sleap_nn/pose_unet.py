"""SLEAP's U-Net for animal pose estimation."""

import torch
from sleap_nn.architectures.unet import UNet
from torch import nn


class Model(nn.Module):
    def __init__(self, filters):
        super().__init__()
        self.model = UNet(
            output_stride=2,
            in_channels=1,
            filters=filters,
            filters_rate=2,
            down_blocks=3,
            up_blocks=2,
            stem_blocks=1,
        )

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.rand(1, 1, 128, 128)]


def get_init_inputs():
    return [16]
