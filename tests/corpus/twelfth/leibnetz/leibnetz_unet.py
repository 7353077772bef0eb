"""U-Net for images assembled from a graph of nodes."""

import torch
from leibnetz import build_unet
from torch import nn


class Model(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.model = build_unet(top_resolution=(8, 8), base_nc=base)

    def forward(self, x):
        return self.model(x)["output"] if isinstance(x, dict) else self.model(x)


def get_inputs():
    return [torch.randn(1, 1, 64, 64)]


def get_init_inputs():
    return [8]
