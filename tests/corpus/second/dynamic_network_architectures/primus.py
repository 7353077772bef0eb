"""Primus: a vision transformer over patches of a volume with rotary positions in three
dimensions."""

import torch
from dynamic_network_architectures.architectures.primus import Primus


class Model(torch.nn.Module):
    def __init__(self, dim, depth, heads):
        super().__init__()
        self.net = Primus(
            1,
            dim,
            (8, 8, 8),
            2,
            depth,
            heads,
            input_shape=(32, 32, 32),
            init_values=0.1,
            scale_attn_inner=True,
        )

    def forward(self, volume):
        return self.net(volume)


def get_inputs():
    return [torch.randn(1, 1, 32, 32, 32)]


def get_init_inputs():
    return [132, 3, 2]
