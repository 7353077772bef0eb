"""Transposed convolution that doubles the height and width of a feature map."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 8
IN_CHANNELS = 64
OUT_CHANNELS = 32
HEIGHT = 32
WIDTH = 48


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.upsample = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size=3, stride=2, padding=1, output_padding=1
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.upsample(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS]
