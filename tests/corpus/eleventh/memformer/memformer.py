"""Memformer: encoder and decoder with memory slots."""

import torch
from memformer import Memformer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Memformer(
            dim=128,
            enc_num_tokens=256,
            enc_depth=2,
            enc_heads=4,
            enc_max_seq_len=64,
            dec_num_tokens=256,
            dec_depth=2,
            dec_heads=4,
            dec_max_seq_len=64,
            num_memory_slots=16,
        )

    def forward(self, src, tgt):
        return self.model(src, tgt)


def get_inputs():
    return [torch.randint(0, 256, (2, 64)), torch.randint(0, 256, (2, 64))]


def get_init_inputs():
    return []
