"""Product of a tall, skinny matrix and a short, wide one: much output from a small inner size."""

import torch
from torch import Tensor, nn

M = 4096
K = 32
N = 2048


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
