"""SwiGLU over one projection that holds gate and up channels side by side."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
SEQ_LEN = 128
DIM = 512
HIDDEN_DIM = 1376


class Model(nn.Module):
    def __init__(self, dim: int, hidden_dim: int):
        super().__init__()
        self.gate_up_proj = nn.Linear(dim, 2 * hidden_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = torch.chunk(self.gate_up_proj(x), 2, dim=-1)
        return gate * torch.sigmoid(gate) * up


def get_inputs():
    return [torch.randn(BATCH_SIZE, SEQ_LEN, DIM)]


def get_init_inputs():
    return [DIM, HIDDEN_DIM]
