"""Set transformer over the nodes of an image set."""

import torch
from tgraphx.models.set_transformer import TGraphXSetAttention
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = TGraphXSetAttention(
            "graph_classification", (3, 16, 16), embed_dim=64, num_layers=2, num_classes=6
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(12, 3, 16, 16)]


def get_init_inputs():
    return []
