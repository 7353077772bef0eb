"""CrabNet, attention over a compound's composition, from crabnet."""

import torch
from crabnet.kingcrab import SubCrab
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.model = SubCrab(
            out_dims=3,
            d_model=dim,
            N=layers,
            heads=4,
            compute_device="cpu",
            out_hidden=[128, 64],
            dim_feedforward=256,
        )

    def forward(self, elements, fractions):
        return self.model(elements, fractions)


def get_inputs():
    fractions = torch.rand(8, 5)
    return [torch.randint(1, 90, (8, 5)), fractions / fractions.sum(1, keepdim=True)]


def get_init_inputs():
    return [128, 2]
