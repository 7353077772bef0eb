"""Layer normalisation of token embeddings over their features, with learned scale and shift."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 16
SEQ_LEN = 128
DIM = 1024


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


def get_inputs():
    return [2.0 * torch.randn(BATCH_SIZE, SEQ_LEN, DIM) + 0.5]


def get_init_inputs():
    return [DIM]
