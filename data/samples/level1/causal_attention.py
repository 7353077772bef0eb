"""Causal scaled dot-product attention in bfloat16, one call to the fused operator."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 4
NUM_HEADS = 8
SEQ_LEN = 256
HEAD_DIM = 64


class Model(nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def get_inputs():
    shape = (BATCH_SIZE, NUM_HEADS, SEQ_LEN, HEAD_DIM)
    return [torch.randn(shape, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs():
    return []
