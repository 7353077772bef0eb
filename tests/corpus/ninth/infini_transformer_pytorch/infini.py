"""Infini-transformer run on two segments with its compressed memory between them."""

import torch
from infini_transformer_pytorch import InfiniTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim, depth):
        super().__init__()
        self.model = InfiniTransformer(
            num_tokens=tokens, dim=dim, depth=depth, dim_head=64, heads=4, use_mem_delta_rule=True
        )

    def forward(self, first, second):
        logits, _, memories = self.model(first, return_new_memories=True)
        later, _, memories = self.model(second, past_memories=memories, return_new_memories=True)
        return logits, later


def get_inputs():
    return [torch.randint(0, 256, (1, 128)), torch.randint(0, 256, (1, 128))]


def get_init_inputs():
    return [256, 256, 4]
