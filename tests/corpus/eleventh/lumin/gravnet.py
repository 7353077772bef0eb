"""GravNet: learnt neighbours in a latent space."""

import torch
from lumin.nn.models.blocks.gnn_blocks import GravNet
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GravNet(
            n_v=16,
            n_fpv=6,
            cat_means=True,
            f_slr_depth=2,
            n_s=3,
            n_lr=8,
            k=4,
            f_out_depth=2,
            n_out=[16, 16],
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 16, 6)]


def get_init_inputs():
    return []
