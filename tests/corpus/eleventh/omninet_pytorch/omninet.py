"""OmniNet: attention over tokens of all layers."""

import torch
from omninet_pytorch import Omninet
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Omninet(
            dim=128,
            depth=4,
            pool_layer_tokens_every=2,
            heads=4,
            dim_head=32,
            feature_redraw_interval=None,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 32, 128)]


def get_init_inputs():
    return []
