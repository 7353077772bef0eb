"""Three-dimensional convolution over a volume that is shallower than it is wide."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 2
IN_CHANNELS = 8
OUT_CHANNELS = 24
DEPTH = 16
HEIGHT = WIDTH = 48


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, padding=1)

    def forward(self, volume: Tensor) -> Tensor:
        return self.conv(volume)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, 3]
