"""Mega: moving average equipped gated attention."""

import torch
from mega_pytorch import Mega
from torch import nn


class Model(nn.Module):
    def __init__(self, num_tokens, dim):
        super().__init__()
        self.model = Mega(
            num_tokens=num_tokens,
            dim=dim,
            depth=2,
            ema_heads=8,
            attn_dim_qk=32,
            attn_dim_value=128,
            laplacian_attn_fn=True,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 200, (2, 48))]


def get_init_inputs():
    return [200, 64]
