"""Vision transformer with axial attention on fields of physics, from the_well."""

import torch
from the_well.benchmark.models import AViT
from torch import nn


class Model(nn.Module):
    def __init__(self, fields, resolution, width):
        super().__init__()
        self.model = AViT(
            dim_in=4 * fields,
            dim_out=fields,
            n_spatial_dims=2,
            spatial_resolution=resolution,
            hidden_dim=width,
            num_heads=6,
            processor_blocks=4,
        )

    def forward(self, history):
        return history[:, -1] + self.model(history.flatten(1, 2).movedim(1, -1)).movedim(-1, 1)


def get_inputs():
    return [torch.randn(1, 4, 3, 64, 64)]


def get_init_inputs():
    return [3, (64, 64), 192]
