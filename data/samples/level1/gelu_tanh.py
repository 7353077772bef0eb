"""GELU by its tanh approximation, spelled out as early language models did."""

import math

import torch
from torch import Tensor, nn

BATCH_SIZE = 512
DIM = 4096


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def get_inputs():
    return [torch.randn(BATCH_SIZE, DIM)]


def get_init_inputs():
    return []
