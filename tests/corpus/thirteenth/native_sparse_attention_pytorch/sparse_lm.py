"""Language model with native sparse attention: compressed, selected and sliding-window branches."""

import torch
from native_sparse_attention_pytorch.transformer import Transformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = Transformer(
            num_tokens=256,
            dim=dim,
            depth=depth,
            dim_head=32,
            heads=4,
            kv_heads=2,
            use_sparse_attn=True,
            sparse_attn_kwargs={
                "sliding_window_size": 16,
                "compress_block_size": 8,
                "compress_block_sliding_stride": 4,
                "selection_block_size": 8,
                "num_selected_blocks": 2,
            },
        )

    def forward(self, tokens):
        return self.model(tokens)


def get_inputs():
    return [torch.randint(0, 256, (1, 64))]


def get_init_inputs():
    return [128, 3]
