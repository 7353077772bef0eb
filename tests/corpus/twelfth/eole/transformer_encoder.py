"""Transformer encoder of a translation model with rotary positions."""

import torch
from eole.config.models import TransformerEncoderConfig
from eole.encoders.transformer import TransformerEncoder
from torch import nn


class Model(nn.Module):
    def __init__(self, words, size):
        super().__init__()
        self.embedding = nn.Embedding(words, size, padding_idx=0)
        self.model = TransformerEncoder(
            TransformerEncoderConfig(
                layers=2, hidden_size=size, heads=4, transformer_ff=128, layer_norm="rms"
            )
        )

    def forward(self, tokens):
        out, _ = self.model(self.embedding(tokens), pad_mask=(tokens == 0).unsqueeze(1))
        return out


def get_inputs():
    return [torch.randint(1, 200, (2, 20))]


def get_init_inputs():
    return [200, 64]
