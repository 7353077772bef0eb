"""Jet: normalizing flow of transformer couplings over image patches."""

import torch
from jet_pytorch import Jet
from torch import nn


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.model = Jet(
            patch_size=4,
            patch_dim=48,
            n_patches=64,
            img_dims=(32, 32),
            coupling_layers=layers,
            block_depth=1,
            block_width=96,
            num_heads=4,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 32, 32, 3)]


def get_init_inputs():
    return [5]
