"""Two-dimensional convolution of a wide image with a kernel that is wider than high."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
IN_CHANNELS = 16
OUT_CHANNELS = 32
HEIGHT = 64
WIDTH = 160


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple[int, int]):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=(1, 3), bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, (3, 7)]
