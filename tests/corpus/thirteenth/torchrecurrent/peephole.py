"""A stack of peephole LSTM cells, then a nonlinear-architecture-search (NAS) cell."""

import torch
from torch import nn
from torchrecurrent import NAS, PeepholeLSTM


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.peephole = PeepholeLSTM(features, hidden, num_layers=2)
        self.nas = NAS(hidden, hidden)
        self.head = nn.Linear(hidden, 5)

    def forward(self, x):
        x, _ = self.peephole(x)
        x, _ = self.nas(x)
        return self.head(x)


def get_inputs():
    return [torch.randn(8, 4, 32)]


def get_init_inputs():
    return [32, 64]
