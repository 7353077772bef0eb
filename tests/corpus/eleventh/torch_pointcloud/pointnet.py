"""PointNet classification of two clouds in one batch."""

import torch
from torch import nn
from torch_pointcloud.models.pointnet import PointNetClassification


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = PointNetClassification(3, 10)

    def forward(self, x, pos, batch):
        return self.model(x, pos, batch)


def get_inputs():
    return [torch.randn(256, 3), torch.randn(256, 3), torch.arange(2).repeat_interleave(128)]


def get_init_inputs():
    return []
