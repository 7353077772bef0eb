"""Compressive transformer over a segment and two memories."""

import torch
from compressive_transformer_pytorch import CompressiveTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim, depth):
        super().__init__()
        self.model = CompressiveTransformer(
            num_tokens=tokens,
            dim=dim,
            depth=depth,
            seq_len=64,
            mem_len=64,
            cmem_len=16,
            cmem_ratio=4,
            heads=4,
            memory_layers=[depth - 1, depth],
        )

    def forward(self, ids, memory, compressed):
        logits, memories, _ = self.model(ids, memories=(memory, compressed))
        return logits, memories.mem, memories.compressed_mem


def get_inputs():
    return [
        torch.randint(0, 500, (2, 64)),
        torch.randn(2, 2, 64, 128),
        torch.randn(2, 2, 16, 128),
    ]


def get_init_inputs():
    return [500, 128, 4]
