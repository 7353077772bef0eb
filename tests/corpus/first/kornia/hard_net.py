"""Kornia's HardNet: a descriptor for each patch, the patch normalised."""

import torch
from kornia.feature import HardNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = HardNet(pretrained=False)

    def forward(self, patches):
        return self.net(patches)


def get_inputs():
    return [torch.rand(8, 1, 32, 32)]


def get_init_inputs():
    return []
