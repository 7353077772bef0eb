"""Geometric algebra transformer over multivectors."""

import torch
from ezgatr.nets.mv_only_gatr import MVOnlyGATrConfig, MVOnlyGATrModel
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MVOnlyGATrModel(
            MVOnlyGATrConfig(
                num_layers=3,
                size_context=32,
                size_channels_in=4,
                size_channels_out=2,
                size_channels_hidden=16,
                size_channels_intermediate=16,
                attn_num_heads=4,
            )
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 32, 4, 16)]


def get_init_inputs():
    return []
