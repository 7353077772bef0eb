"""Product of two lower triangular matrices, which is lower triangular itself."""

import torch
from torch import Tensor, nn

SIZE = 1024


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.tril(a @ b)


def get_inputs():
    return [torch.randn(SIZE, SIZE).tril(), torch.randn(SIZE, SIZE).tril()]


def get_init_inputs():
    return []
