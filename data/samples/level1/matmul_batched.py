"""Batched matrix product whose second operand is stored transposed, as attention scores are."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 32
M = 256
K = 64
N = 512


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.bmm(a, b.transpose(1, 2))


def get_inputs():
    return [torch.randn(BATCH_SIZE, M, K), torch.randn(BATCH_SIZE, N, K)]


def get_init_inputs():
    return []
