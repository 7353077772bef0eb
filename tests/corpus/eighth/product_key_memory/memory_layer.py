"""Transformer block whose feed-forward layer is a product-key memory."""

import torch
from product_key_memory import PKM
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, keys, top):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attend = nn.MultiheadAttention(dim, 8, batch_first=True)
        self.memory = PKM(dim, heads=4, num_keys=keys, topk=top, dim_head=64)

    def forward(self, x, mask):
        y = self.norm(x)
        x = x + self.attend(y, y, y, need_weights=False)[0]
        return x + self.memory(x, input_mask=mask)


def get_inputs():
    mask = torch.ones(2, 64, dtype=torch.bool)
    mask[1, 50:] = False
    return [torch.randn(2, 64, 256), mask]


def get_init_inputs():
    return [256, 64, 16]
