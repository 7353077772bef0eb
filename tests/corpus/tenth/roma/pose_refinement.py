"""Rigid alignment and interpolation of rotations predicted from points, from roma."""

import roma
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, points, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3 * points, width), nn.ReLU(), nn.Linear(width, 9))

    def forward(self, cloud, reference):
        rotation = roma.special_procrustes(self.encoder(cloud.flatten(1)).unflatten(1, (3, 3)))
        moved = cloud @ rotation.transpose(1, 2)
        rotvec = roma.rotmat_to_rotvec(rotation)
        half = roma.rotvec_to_rotmat(0.5 * rotvec)
        aligned, shift = roma.rigid_points_registration(moved, reference)
        return roma.rotmat_to_unitquat(aligned @ half), shift


def get_inputs():
    return [torch.randn(8, 32, 3), torch.randn(8, 32, 3)]


def get_init_inputs():
    return [32, 128]
