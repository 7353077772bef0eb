"""Pangu-Weather on a coarse grid, from physicsnemo."""

import torch
from physicsnemo.models.pangu import Pangu
from torch import nn


class Model(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.model = Pangu(
            img_size=size,
            patch_size=(2, 4, 4),
            embed_dim=width,
            num_heads=(2, 4, 4, 2),
            window_size=(2, 6, 12),
        )

    def forward(self, surface, masks, upper):
        return self.model(self.model.prepare_input(surface, masks, upper))


def get_inputs():
    return [torch.randn(1, 4, 91, 180), torch.randn(3, 91, 180), torch.randn(1, 5, 13, 91, 180)]


def get_init_inputs():
    return [(91, 180), 48]
