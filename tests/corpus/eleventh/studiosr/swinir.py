"""SwinIR: super-resolution with shifted windows."""

import torch
from studiosr.models import SwinIR
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = SwinIR(scale=2, embed_dim=36, depths=[2, 2], num_heads=[3, 3], window_size=8)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.rand(1, 3, 24, 24)]


def get_init_inputs():
    return []
