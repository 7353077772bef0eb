"""Boltz: the diffusion transformer over tokens, conditioned on singles and biased by pairs."""

import torch
from boltz.model.modules.transformers import DiffusionTransformer


class Model(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.net = DiffusionTransformer(
            depth=depth, heads=8, dim=256, dim_single_cond=192, dim_pairwise=64
        )

    def forward(self, tokens, single, pair, mask):
        return self.net(tokens, single, pair, mask=mask)


def get_inputs():
    return [
        torch.randn(2, 40, 256),
        torch.randn(2, 40, 192),
        torch.randn(2, 40, 40, 64),
        torch.ones(2, 40),
    ]


def get_init_inputs():
    return [6]
