"""Graph processor of a weather model: message passing on a mesh."""

import torch
from anemoi.models.distributed.shapes import GraphShardInfo
from anemoi.models.layers.processor import GNNProcessor
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        self.embed = nn.Linear(12, channels)
        self.model = GNNProcessor(
            num_layers=layers,
            num_channels=channels,
            num_chunks=1,
            mlp_extra_layers=0,
            edge_dim=4,
            gradient_checkpointing=False,
            layer_kernels=None,
        )
        self.head = nn.Linear(channels, 12)

    def forward(self, x, edge_attr, edge_index):
        return self.head(
            self.model(
                self.embed(x), 1, GraphShardInfo(nodes=[40], edges=[160]), edge_attr, edge_index
            )
        )


def get_inputs():
    target = torch.arange(40).repeat_interleave(4)
    return [
        torch.randn(40, 12),
        torch.randn(160, 4),
        torch.stack([torch.randint(0, 40, (160,)), target]),
    ]


def get_init_inputs():
    return [64, 2]
