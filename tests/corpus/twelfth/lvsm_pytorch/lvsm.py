"""Large view synthesis model: target image from images and Pluecker rays."""

import torch
from lvsm_pytorch import LVSM
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = LVSM(
            dim,
            max_image_size=64,
            patch_size=16,
            depth=depth,
            heads=4,
            dim_head=32,
            max_input_images=4,
            rand_input_image_embed=False,
        )

    def forward(self, images, rays, target_rays):
        return self.model(images, rays, target_rays)


def get_inputs():
    return [torch.rand(1, 2, 3, 64, 64), torch.randn(1, 2, 6, 64, 64), torch.randn(1, 6, 64, 64)]


def get_init_inputs():
    return [128, 2]
