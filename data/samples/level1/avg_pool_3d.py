"""Three-dimensional average pooling over a volume, such as a short video clip."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
CHANNELS = 16
DEPTH = 16
HEIGHT = WIDTH = 56


class Model(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int):
        super().__init__()
        self.pool = nn.AvgPool3d(kernel_size, stride=stride, padding=padding)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, CHANNELS, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [3, 2, 1]
