"""CoLT5 transformer block: light and heavy branches, tokens routed by coordinate descent."""

import torch
from colt5_attention import ConditionalRoutedTransformerBlock
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.embed = nn.Embedding(500, dim)
        self.blocks = nn.ModuleList(
            [
                ConditionalRoutedTransformerBlock(
                    dim,
                    num_heavy_ff_tokens=16,
                    num_heavy_attn_tokens_q=16,
                    num_heavy_attn_tokens_kv=32,
                    light_dim_head=32,
                    light_heads=4,
                    light_window_size=32,
                    heavy_dim_head=32,
                    heavy_heads=4,
                    light_ff_mult=0.5,
                    heavy_ff_mult=4,
                )
                for _ in range(depth)
            ]
        )
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def get_inputs():
    return [torch.randint(0, 500, (2, 128))]


def get_init_inputs():
    return [128, 3]
