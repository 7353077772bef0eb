"""Memory transformer XL: short-term memory of hidden states, long-term memory by attention."""

import torch
from memory_transformer_xl import MemoryTransformerXL
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = MemoryTransformerXL(
            num_tokens=500,
            dim=dim,
            heads=4,
            depth=depth,
            seq_len=32,
            mem_len=32,
            lmem_len=16,
            memory_layers=[1, 2],
            mem_write_iters=1,
            num_mem_kv=8,
        )

    def forward(self, tokens):
        logits, memory = self.model(tokens)
        return logits, memory.short, memory.long


def get_inputs():
    return [torch.randint(0, 500, (1, 32))]


def get_init_inputs():
    return [128, 2]
