"""Depthwise convolution: one small filter a channel and no mixing between channels."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 8
CHANNELS = 64
HEIGHT = WIDTH = 112


class Model(nn.Module):
    def __init__(self, channels: int, kernel_size: int, stride: int):
        super().__init__()
        self.depthwise = nn.Conv2d(
            channels, channels, kernel_size, stride, padding=kernel_size // 2, groups=channels
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.depthwise(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS, 3, 2]
