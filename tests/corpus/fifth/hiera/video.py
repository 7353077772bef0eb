"""Hiera: a hierarchical transformer for video with attention inside mask units."""

import torch
from hiera import Hiera


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = Hiera(
            input_size=(8, size, size),
            embed_dim=64,
            num_heads=1,
            stages=(1, 2, 5, 2),
            num_classes=100,
            q_stride=(1, 2, 2),
            mask_unit_size=(1, 8, 8),
            patch_kernel=(3, 7, 7),
            patch_stride=(2, 4, 4),
            patch_padding=(1, 3, 3),
            sep_pos_embed=True,
        )

    def forward(self, video):
        return self.net(video)


def get_inputs():
    return [torch.randn(1, 3, 8, 128, 128)]


def get_init_inputs():
    return [128]
