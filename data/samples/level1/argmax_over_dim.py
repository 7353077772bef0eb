"""Index of the largest value along a dimension, an operation with an integer result."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 32
HEIGHT = 256
WIDTH = 384


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return torch.argmax(x, dim=self.dim)


def get_inputs():
    return [torch.randn(BATCH_SIZE, HEIGHT, WIDTH)]


def get_init_inputs():
    return [1]
