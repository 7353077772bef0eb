"""Hierarchical attention over chunked memories."""

import torch
from htm_pytorch import HTMBlock
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = HTMBlock(dim=128, topk_mems=4, mem_chunk_size=16, heads=4, dim_head=32)

    def forward(self, queries, memories):
        return self.model(queries, memories)


def get_inputs():
    return [torch.randn(2, 32, 128), torch.randn(2, 128, 128)]


def get_init_inputs():
    return []
