"""Leaky ReLU over a batch of feature maps, with a slope of its own for negative values."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 16
CHANNELS = 64
HEIGHT = WIDTH = 32


class Model(nn.Module):
    def __init__(self, negative_slope: float):
        super().__init__()
        self.activation = nn.LeakyReLU(negative_slope)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [0.1]
