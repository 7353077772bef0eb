"""Transformer that ponders: its block is run until all sequences halt, from ponder_transformer."""

import torch
from ponder_transformer import PonderTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim, length):
        super().__init__()
        self.model = PonderTransformer(num_tokens=tokens, dim=dim, max_seq_len=length)

    def forward(self, ids):
        return self.model(ids)


def get_inputs():
    return [torch.randint(0, 1000, (2, 128))]


def get_init_inputs():
    return [1000, 256, 128]
