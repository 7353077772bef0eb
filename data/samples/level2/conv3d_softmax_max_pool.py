"""Three-dimensional convolution, a softmax over its channels, and two rounds of max pooling."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
IN_CHANNELS = 3
OUT_CHANNELS = 16
DEPTH = 18
HEIGHT = WIDTH = 34


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.softmax = nn.Softmax(dim=1)
        self.pool = nn.MaxPool3d(2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.softmax(self.conv(x))
        return self.pool(self.pool(x))


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, 3]
