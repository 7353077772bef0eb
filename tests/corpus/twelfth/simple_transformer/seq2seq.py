"""Encoder-decoder transformer for translation."""

import torch
from simple_transformer import Transformer
from torch import nn


class Model(nn.Module):
    def __init__(self, src_vocab, trg_vocab):
        super().__init__()
        self.model = Transformer(
            src_vocab, trg_vocab, 0, 0, embed_size=64, num_layers=2, heads=4, max_length=64
        )

    def forward(self, src, trg):
        return self.model(src, trg)


def get_inputs():
    return [torch.randint(1, 100, (2, 12)), torch.randint(1, 120, (2, 10))]


def get_init_inputs():
    return [100, 120]
