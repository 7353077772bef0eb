"""FLASH: gated attention units in groups, quadratic within and linear between."""

import torch
from flash_pytorch import FLASHTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = FLASHTransformer(
            num_tokens=2000,
            dim=128,
            depth=3,
            causal=True,
            group_size=64,
            query_key_dim=64,
            laplace_attn_fn=True,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 2000, (2, 200))]


def get_init_inputs():
    return []
