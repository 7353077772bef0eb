"""STAM: space then time attention for video classification."""

import torch
from stam_pytorch import STAM
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.model = STAM(
            dim=dim,
            image_size=64,
            patch_size=16,
            num_frames=5,
            space_depth=3,
            space_heads=4,
            space_mlp_dim=4 * dim,
            time_depth=2,
            time_heads=4,
            time_mlp_dim=4 * dim,
            num_classes=100,
            space_dim_head=32,
            time_dim_head=32,
        )

    def forward(self, frames):
        return self.model(frames)


def get_inputs():
    return [torch.randn(1, 5, 3, 64, 64)]


def get_init_inputs():
    return [192]
