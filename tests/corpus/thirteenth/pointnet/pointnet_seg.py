"""PointNet segmentation with a spatial transformer."""

import torch
from pointnet import STN, PointNetSeg
from torch import nn


class Model(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.model = PointNetSeg(features, classes, stn_3d=STN(in_dim=3))

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.rand(2, 3, 512)]


def get_init_inputs():
    return [3, 13]
