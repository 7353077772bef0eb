"""Linformer with shared projections of keys and values, from linformer-pytorch."""

import torch
from linformer_pytorch import LinformerLM
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, channels, depth):
        super().__init__()
        self.model = LinformerLM(
            num_tokens=tokens,
            input_size=128,
            channels=channels,
            dim_k=32,
            dim_ff=256,
            nhead=4,
            depth=depth,
            parameter_sharing="kv",
        )

    def forward(self, ids):
        return self.model(ids)


def get_inputs():
    return [torch.randint(0, 500, (2, 128))]


def get_init_inputs():
    return [500, 128, 3]
