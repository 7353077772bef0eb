"""O-CNN: the octree of a cloud of points, a U-Net of octree convolutions, each point's class."""

import ocnn
import torch
from ocnn.octree import Octree, Points


class Model(torch.nn.Module):
    def __init__(self, depth, classes):
        super().__init__()
        self.depth = depth
        self.net = ocnn.models.UNet(4, classes, interp="linear", nempty=False)

    def forward(self, points, normals):
        octree = Octree(self.depth, full_depth=2)
        octree.build_octree(Points(points, normals))
        octree.construct_all_neigh()
        data = octree.get_input_feature("ND")
        query = torch.cat([points, points.new_zeros(len(points), 1)], 1)
        return self.net(data, octree, self.depth, query)


def get_inputs():
    points = torch.nn.functional.normalize(torch.randn(1500, 3), dim=1)
    return [points * 0.8, points]


def get_init_inputs():
    return [6, 8]
