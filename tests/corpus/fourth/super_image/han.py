"""HAN: super-resolution with attention within channels, across layers and over channels and places
at once; pixels shuffled to twice the size."""

import torch
from super_image import HanConfig, HanModel


class Model(torch.nn.Module):
    def __init__(self, scale, groups, blocks):
        super().__init__()
        self.net = HanModel(
            HanConfig(scale=scale, n_resgroups=groups, n_resblocks=blocks, n_feats=32)
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 40, 40)]


def get_init_inputs():
    return [2, 10, 4]
