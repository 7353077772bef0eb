"""Convolution with a learned bias and scale a channel, a sigmoid, and group normalisation."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 8
IN_CHANNELS = 16
OUT_CHANNELS = 32
NUM_GROUPS = 8
HEIGHT = WIDTH = 64


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, num_groups: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, bias=False)
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.scale = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        x = (x + self.bias) * self.scale
        x = torch.sigmoid(x)
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, 3, NUM_GROUPS]
