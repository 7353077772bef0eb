"""Crossformer: two-stage attention over time patches and series."""

import torch
from basicts.models.Crossformer import Crossformer, CrossformerConfig
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Crossformer(
            CrossformerConfig(
                input_len=48,
                output_len=24,
                num_features=7,
                hidden_size=64,
                n_heads=4,
                intermediate_size=128,
                patch_len=6,
            )
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 48, 7)]


def get_init_inputs():
    return []
