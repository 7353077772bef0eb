"""SiLU, also known as Swish: each value weighted by its own sigmoid."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 256
DIM = 8192


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, DIM)]


def get_init_inputs():
    return []
