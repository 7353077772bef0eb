"""Causal convolution whose channels split into a tanh filter and a sigmoid gate, as in WaveNet."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 8
CHANNELS = 64
LENGTH = 2000


class Model(nn.Module):
    def __init__(self, channels: int, kernel_size: int, dilation: int):
        super().__init__()
        self.left_padding = (kernel_size - 1) * dilation
        self.conv = nn.Conv1d(channels, 2 * channels, kernel_size, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(F.pad(x, (self.left_padding, 0)))
        filtered, gate = x.chunk(2, dim=1)
        return torch.tanh(filtered) * torch.sigmoid(gate)


def get_inputs():
    return [torch.randn(BATCH_SIZE, CHANNELS, LENGTH)]


def get_init_inputs():
    return [CHANNELS, 2, 8]
