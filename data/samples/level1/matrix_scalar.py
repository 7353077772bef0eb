"""Matrix times a scalar that the caller passes as a plain Python number."""

import torch
from torch import Tensor, nn

ROWS = 2048
COLUMNS = 1024


class Model(nn.Module):
    def forward(self, matrix: Tensor, scale: float) -> Tensor:
        return matrix * scale


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), 0.75]


def get_init_inputs():
    return []
