"""Equivariant transformer block on a graph."""

import torch
from e3nn import o3
from e3tools.nn import TransformerBlock
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.sh = o3.Irreps("1x0e + 1x1o + 1x2e")
        irreps = o3.Irreps("16x0e + 8x1o")
        self.model = TransformerBlock(
            irreps_in=irreps, irreps_out=irreps, irreps_sh=self.sh, edge_attr_dim=8, num_heads=4
        )

    def forward(self, nodes, edges, attributes, vectors):
        sh = o3.spherical_harmonics(self.sh, vectors, normalize=True)
        return self.model(nodes, edges, attributes, sh)


def get_inputs():
    return [
        torch.randn(20, 40),
        torch.randint(0, 20, (2, 80)),
        torch.rand(80, 8),
        torch.randn(80, 3),
    ]


def get_init_inputs():
    return []
