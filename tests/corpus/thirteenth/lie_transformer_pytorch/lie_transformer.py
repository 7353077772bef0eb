"""Lie transformer: attention equivariant to SE(3) on lifted coordinates."""

import torch
from lie_transformer_pytorch import LieTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = LieTransformer(dim=dim, depth=depth, heads=4, dim_head=16, liftsamples=2)

    def forward(self, feats, coors, mask):
        return self.model(feats, coors, mask=mask)


def get_inputs():
    return [torch.randn(1, 24, 64), torch.randn(1, 24, 3), torch.ones(1, 24).bool()]


def get_init_inputs():
    return [64, 2]
