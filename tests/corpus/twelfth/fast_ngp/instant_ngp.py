"""Instant-NGP radiance field: multiresolution hash encoding and small networks."""

import torch
from fast_ngp.encoding.multi_hash_enc import MultiresHashEncoding
from fast_ngp.models.nerf_mlp import NeRFMLP
from torch import nn


class Model(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.encoding = MultiresHashEncoding(
            n_levels=levels, log2_hashmap_size=12, finest_resolution=256
        )
        self.nerf = NeRFMLP(self.encoding.get_output_dim(), dir_encoding_dim=16, hidden_dim=64)

    def forward(self, x, d):
        return self.nerf(self.encoding(x), d)


def get_inputs():
    return [torch.rand(256, 3), torch.randn(256, 16)]


def get_init_inputs():
    return [8]
