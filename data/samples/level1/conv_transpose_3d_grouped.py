"""Grouped transposed convolution that enlarges a volume, its channels in four separate groups."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 2
IN_CHANNELS = 32
OUT_CHANNELS = 32
GROUPS = 4
DEPTH, HEIGHT, WIDTH = 8, 16, 20


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, groups: int):
        super().__init__()
        self.upsample = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size=(3, 5, 5), stride=2, padding=1, groups=groups
        )

    def forward(self, volume: Tensor) -> Tensor:
        return self.upsample(volume)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, GROUPS]
