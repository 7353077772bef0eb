"""Linear attention transformer language model with some local attention heads."""

import torch
from linear_attention_transformer import LinearAttentionTransformerLM
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = LinearAttentionTransformerLM(
            num_tokens=1000,
            dim=dim,
            depth=depth,
            max_seq_len=128,
            heads=4,
            dim_head=32,
            causal=True,
            n_local_attn_heads=2,
            local_attn_window_size=32,
            ff_glu=True,
            shift_tokens=True,
        )

    def forward(self, tokens):
        return self.model(tokens)


def get_inputs():
    return [torch.randint(0, 1000, (1, 128))]


def get_init_inputs():
    return [128, 3]
