"""Contraction of a four-dimensional tensor with a matrix over their shared last index."""

import torch
from torch import Tensor, nn

BATCH_SIZE, ROWS, COLUMNS = 8, 16, 32
IN_FEATURES = 256
OUT_FEATURES = 384


class Model(nn.Module):
    def forward(self, tensor: Tensor, matrix: Tensor) -> Tensor:
        return torch.einsum("bijl,lk->bijk", tensor, matrix)


def get_inputs():
    return [
        torch.randn(BATCH_SIZE, ROWS, COLUMNS, IN_FEATURES),
        torch.randn(IN_FEATURES, OUT_FEATURES),
    ]


def get_init_inputs():
    return []
