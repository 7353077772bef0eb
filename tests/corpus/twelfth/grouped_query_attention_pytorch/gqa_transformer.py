"""Encoder-decoder language model with grouped-query attention."""

import torch
from grouped_query_attention_pytorch.transformer import GQATransformerLM
from torch import nn


class Model(nn.Module):
    def __init__(self, num_tokens, d_model):
        super().__init__()
        self.model = GQATransformerLM(
            num_tokens,
            d_model=d_model,
            nhead=4,
            kv_heads=2,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=128,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 200, (2, 24))]


def get_init_inputs():
    return [200, 64]
