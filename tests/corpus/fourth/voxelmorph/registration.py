"""VoxelMorph in three dimensions: a U-Net on a moving and a fixed volume, a velocity field that is
integrated by scaling and squaring, and the moving volume warped by it."""

import torch
from voxelmorph.nn.models import VxmPairwise


class Model(torch.nn.Module):
    def __init__(self, features, steps):
        super().__init__()
        self.net = VxmPairwise(
            ndim=3,
            source_channels=1,
            target_channels=1,
            nb_features=features,
            integration_steps=steps,
            flow_initializer=0.05,
        )

    def forward(self, moving, fixed):
        return self.net(moving, fixed, return_warped_source=True)


def get_inputs():
    return [torch.rand(1, 1, 32, 32, 32), torch.rand(1, 1, 32, 32, 32)]


def get_init_inputs():
    return [(16, 16, 16, 16), 5]
