"""Molecule attention transformer: attention with distances and adjacency."""

import torch
from molecule_attention_transformer import MAT
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MAT(dim_in=27, model_dim=128, dim_out=4, depth=3, heads=4)

    def forward(self, x, mask, adjacency, distance):
        return self.model(x, mask=mask, adjacency_mat=adjacency, distance_mat=distance)


def get_inputs():
    return [
        torch.randn(2, 30, 27),
        torch.ones(2, 30).bool(),
        torch.randint(0, 2, (2, 30, 30)),
        torch.rand(2, 30, 30),
    ]


def get_init_inputs():
    return []
