"""Transformer processor of a weather model over grid points."""

import torch
from anemoi.models.distributed.shapes import GraphShardInfo
from anemoi.models.layers.processor import TransformerProcessor
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        self.embed = nn.Linear(12, channels)
        self.model = TransformerProcessor(
            num_layers=layers,
            num_channels=channels,
            num_chunks=1,
            num_heads=4,
            mlp_hidden_ratio=4,
            qk_norm=True,
            attention_implementation="scaled_dot_product_attention",
            gradient_checkpointing=False,
            layer_kernels=None,
        )
        self.head = nn.Linear(channels, 12)

    def forward(self, x):
        return self.head(self.model(self.embed(x), 1, GraphShardInfo()))


def get_inputs():
    return [torch.randn(80, 12)]


def get_init_inputs():
    return [64, 2]
