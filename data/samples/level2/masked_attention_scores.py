"""Attention weights of masked queries and keys: scaled product, boolean mask, and softmax."""

import math

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
NUM_HEADS = 8
QUERIES = 128
KEYS = 192
HEAD_DIM = 64


class Model(nn.Module):
    def __init__(self, head_dim: int):
        super().__init__()
        self.scale = 1.0 / math.sqrt(head_dim)

    def forward(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * self.scale
        scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
        return scores.softmax(dim=-1)


def get_inputs():
    query = torch.randn(BATCH_SIZE, NUM_HEADS, QUERIES, HEAD_DIM)
    key = torch.randn(BATCH_SIZE, NUM_HEADS, KEYS, HEAD_DIM)
    mask = torch.rand(BATCH_SIZE, 1, QUERIES, KEYS) < 0.8
    return [query, key, mask]


def get_init_inputs():
    return [HEAD_DIM]
