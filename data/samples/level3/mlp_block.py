"""Transformer MLP block: layer norm, two linear layers around a hand-written GELU, residual."""

import math

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
SEQ_LEN = 128
DIM = 384


class NewGELU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        cubic = x + 0.044715 * x * x * x
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * cubic))


class Model(nn.Module):
    def __init__(self, dim: int, expansion: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, expansion * dim)
        self.act = NewGELU()
        self.fc2 = nn.Linear(expansion * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        residual = x
        x = self.norm(x)
        x = self.fc1(x)
        x = self.act(x)
        x = self.fc2(x)
        x += residual
        return x


def get_inputs():
    return [torch.randn(BATCH_SIZE, SEQ_LEN, DIM)]


def get_init_inputs():
    return [DIM, 4]
