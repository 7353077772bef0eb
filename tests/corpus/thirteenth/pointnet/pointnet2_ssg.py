"""PointNet++ classifier with single-scale grouping."""

import torch
from pointnet import PointNet2ClsSSG
from torch import nn


class Model(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.model = PointNet2ClsSSG(
            features, classes, downsample_points=(128, 32), radii=(0.3, 0.6), ks=(16, 32)
        )

    def forward(self, x, xyz):
        return self.model(x, xyz)


def get_inputs():
    return [torch.randn(2, 3, 512), torch.rand(2, 3, 512)]


def get_init_inputs():
    return [3, 40]
