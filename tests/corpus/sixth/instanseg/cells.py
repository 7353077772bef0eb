"""InstanSeg's U-Net for cells and nuclei: one encoder, and two decoders that each give coordinates,
spreads and seeds."""

import torch
from instanseg.utils.models.InstanSeg_UNet import InstanSeg_UNet


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = InstanSeg_UNet(
            in_channels=channels, out_channels=[[2, 2, 1], [2, 2, 1]], layers=[128, 64, 32, 16]
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return [3]
