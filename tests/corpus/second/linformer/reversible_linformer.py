"""A reversible Linformer encoder, separate projections for keys and values."""

import torch
from linformer import Linformer


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = Linformer(dim=dim, seq_len=256, depth=3, k=32, heads=4, reversible=True)

    def forward(self, sequence):
        return self.net(sequence)


def get_inputs():
    return [torch.randn(2, 256, 96)]


def get_init_inputs():
    return [96]
