"""Vector neuron transformer, equivariant to rotations of a point cloud, from VN_transformer."""

import torch
from torch import nn
from VN_transformer import VNTransformer


class Model(nn.Module):
    def __init__(self, dim, depth, features):
        super().__init__()
        self.model = VNTransformer(
            dim=dim,
            depth=depth,
            dim_head=32,
            heads=4,
            dim_feat=features,
            bias_epsilon=1e-6,
            translation_equivariance=True,
        )

    def forward(self, coordinates, features, mask):
        return self.model(coordinates, feats=features, mask=mask)


def get_inputs():
    mask = torch.ones(2, 64, dtype=torch.bool)
    mask[1, 56:] = False
    return [torch.randn(2, 64, 3), torch.randn(2, 64, 16), mask]


def get_init_inputs():
    return [64, 3, 16]
