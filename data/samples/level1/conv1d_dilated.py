"""One-dimensional convolution, dilated and strided, over a long signal."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 8
IN_CHANNELS = 16
OUT_CHANNELS = 32
LENGTH = 8192


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int):
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, stride=2, dilation=4)

    def forward(self, signal: Tensor) -> Tensor:
        return self.conv(signal)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, LENGTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, 5]
