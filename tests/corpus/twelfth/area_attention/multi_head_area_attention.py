"""Multi-head area attention over a two-dimensional memory."""

import torch
from area_attention import AreaAttention, MultiHeadAreaAttention
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        area = AreaAttention(
            key_query_size=32,
            area_key_mode="concat",
            area_value_mode="sum",
            max_area_height=2,
            max_area_width=2,
            memory_height=4,
            memory_width=4,
        )
        self.model = MultiHeadAreaAttention(
            area,
            num_heads=4,
            key_query_size=size,
            key_query_size_hidden=32,
            value_size=size,
            value_size_hidden=32,
        )

    def forward(self, q, k, v):
        return self.model(q, k, v)


def get_inputs():
    return [torch.randn(2, 8, 64), torch.randn(2, 16, 64), torch.randn(2, 16, 64)]


def get_init_inputs():
    return [64]
