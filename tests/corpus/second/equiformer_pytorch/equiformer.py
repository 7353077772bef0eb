"""Equiformer with L2-distance attention over the neighbours of 20 atoms, degrees 0 and 1."""

import torch
from equiformer_pytorch import Equiformer


class Model(torch.nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.net = Equiformer(
            num_tokens=24,
            dim=dims,
            dim_head=(8, 8),
            heads=(4, 2),
            num_degrees=2,
            depth=2,
            num_neighbors=8,
            attend_self=True,
            reduce_dim_out=True,
        )

    def forward(self, tokens, coordinates):
        out = self.net(tokens, coordinates)
        return out.type0, out.type1


def get_inputs():
    return [torch.randint(0, 24, (1, 20)), torch.randn(1, 20, 3)]


def get_init_inputs():
    return [(16, 8)]
