"""Kornia's HyNet on patches that are turned upright by an OriNet."""

import torch
from kornia.feature import HyNet, OriNet
from kornia.geometry.transform import rotate


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.orientation = OriNet(pretrained=False)
        self.describe = HyNet(pretrained=False)

    def forward(self, patches):
        angles = self.orientation(patches)
        turn = 45 * angles.flatten()
        return self.describe(rotate(patches, turn))


def get_inputs():
    return [torch.rand(4, 1, 32, 32)]


def get_init_inputs():
    return []
