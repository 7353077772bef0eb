"""Titans with a neural memory as context, from titans-memory."""

import torch
from titans.models.mac import TitansMAC
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.model = TitansMAC(
            vocab_size=tokens,
            d_model=dim,
            n_layers=2,
            mem_layers=1,
            n_persistent=4,
            chunk_size=16,
            max_seq_len=64,
        )

    def forward(self, ids):
        return self.model(ids)


def get_inputs():
    return [torch.randint(0, 300, (1, 32))]


def get_init_inputs():
    return [300, 64]
