"""Fastformer: additive attention with global query and key."""

import torch
from fast_transformer_pytorch import FastTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, num_tokens, dim):
        super().__init__()
        self.model = FastTransformer(
            num_tokens=num_tokens,
            dim=dim,
            depth=2,
            max_seq_len=64,
            heads=4,
            dim_head=32,
            absolute_pos_emb=True,
        )

    def forward(self, x, mask):
        return self.model(x, mask=mask)


def get_inputs():
    return [torch.randint(0, 1000, (2, 48)), torch.arange(48) < torch.tensor([[48], [40]])]


def get_init_inputs():
    return [1000, 128]
