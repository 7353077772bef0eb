"""MARGE: the encoder and decoder of a retrieval autoencoder; documents weighted by similarity."""

import torch
from marge_pytorch import Marge
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = Marge(
            dim=dim,
            num_tokens=1000,
            max_seq_len=64,
            enc_depth=depth,
            enc_retrieval_depth=1,
            enc_heads=4,
            dec_depth=depth,
            dec_heads=4,
            dec_ff_mult=4,
        )

    def forward(self, evidence, target, target_embeds):
        return self.model(evidence, target, target_embeds)


def get_inputs():
    return [
        torch.randint(0, 1000, (2, 3, 64)),
        torch.randint(0, 1000, (2, 64)),
        torch.randn(2, 128),
    ]


def get_init_inputs():
    return [128, 2]
