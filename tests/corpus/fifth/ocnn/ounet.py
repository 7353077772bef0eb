"""O-CNN's U-Net autoencoder: predicts splits of an octree and a signal in its leaves."""

import torch
from ocnn.models import OUNet
from ocnn.octree import Octree, Points


class Model(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depth = depth
        self.net = OUNet(4, 4, depth, full_depth=2, feature="ND")

    def forward(self, points, normals):
        octree = Octree(self.depth, full_depth=2)
        octree.build_octree(Points(points, normals))
        octree.construct_all_neigh()
        output = self.net(octree, octree, update_octree=False)
        return output["logits"], output["signal"]


def get_inputs():
    points = torch.nn.functional.normalize(torch.randn(1000, 3), dim=1)
    return [points * 0.7, points]


def get_init_inputs():
    return [5]
