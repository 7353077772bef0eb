"""Llama 2 with grouped queries and a key-value cache."""

import torch
from stackformer.models.llama import Llama2
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Llama2(
            vocab_size=1000,
            num_layers=2,
            embed_dim=128,
            num_query_heads=8,
            num_kv_heads=2,
            batch_size=2,
            kv_seq_len=64,
            hidden_dim=256,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 1000, (2, 32))]


def get_init_inputs():
    return []
