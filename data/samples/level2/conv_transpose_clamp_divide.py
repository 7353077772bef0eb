"""Transposed convolution with a learned bias, clamped to a range and divided by a constant."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 8
IN_CHANNELS = 32
OUT_CHANNELS = 16
HEIGHT = WIDTH = 48


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, limit: float, divisor: float):
        super().__init__()
        self.upsample = nn.ConvTranspose2d(in_channels, out_channels, kernel_size=4, stride=2)
        self.bias = nn.Parameter(torch.randn(1, out_channels, 1, 1))
        self.limit = limit
        self.divisor = divisor

    def forward(self, x: Tensor) -> Tensor:
        x = self.upsample(x)
        x = x + self.bias
        x = torch.clamp(x, min=-self.limit, max=self.limit)
        x /= self.divisor
        return x


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, 1.5, 2.0]
