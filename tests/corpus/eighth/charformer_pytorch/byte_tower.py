"""Gradient-based subword tokenisation before a transformer, from charformer-pytorch."""

import torch
from charformer_pytorch import GBST
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.tokens = GBST(
            num_tokens=257,
            dim=dim,
            max_block_size=4,
            downsample_factor=4,
            score_consensus_attn=True,
        )
        layer = nn.TransformerEncoderLayer(dim, 8, 4 * dim, batch_first=True)
        self.tower = nn.TransformerEncoder(layer, layers)

    def forward(self, text, mask):
        tokens, kept = self.tokens(text, mask=mask)
        return self.tower(tokens, src_key_padding_mask=~kept), kept


def get_inputs():
    mask = torch.ones(2, 203, dtype=torch.bool)
    mask[1, 150:] = False
    return [torch.randint(0, 257, (2, 203)), mask]


def get_init_inputs():
    return [256, 3]
