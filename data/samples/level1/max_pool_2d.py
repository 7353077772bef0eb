"""Two-dimensional max pooling whose windows overlap, reach into padding and are dilated."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 8
CHANNELS = 32
HEIGHT = WIDTH = 96


class Model(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size, stride, padding, dilation)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [3, 2, 1, 2]
