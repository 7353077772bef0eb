"""nTransformer: bidirectional encoder on the hypersphere."""

import torch
from nGPT_pytorch import nTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nTransformer(dim=96, depth=2, heads=4, dim_head=24, causal=False)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 48, 96)]


def get_init_inputs():
    return []
