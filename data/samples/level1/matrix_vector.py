"""Matrix times vector with a very long inner dimension, bound by reading the matrix once."""

import torch
from torch import Tensor, nn

ROWS = 256
COLUMNS = 65536


class Model(nn.Module):
    def forward(self, matrix: Tensor, vector: Tensor) -> Tensor:
        return matrix.matmul(vector)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS, 1)]


def get_init_inputs():
    return []
