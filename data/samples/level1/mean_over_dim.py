"""Mean over the middle dimension of a three-dimensional tensor."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 32
SEQ_LEN = 256
DIM = 512


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return torch.mean(x, dim=self.dim)


def get_inputs():
    return [torch.randn(BATCH_SIZE, SEQ_LEN, DIM)]


def get_init_inputs():
    return [1]
