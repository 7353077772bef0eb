"""Gated slot attention transformer: bounded memory with a forget gate."""

import torch
from gated_slot_attention import GSATransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = GSATransformer(
            dim=dim, heads=4, m=16, tau=0.1, depth=depth, vocab_size=500, max_seq_len=64
        )

    def forward(self, tokens):
        return self.model(tokens)


def get_inputs():
    return [torch.randint(0, 500, (1, 16))]


def get_init_inputs():
    return [96, 2]
