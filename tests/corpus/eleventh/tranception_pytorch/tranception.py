"""Tranception: protein language model with grouped depthwise convolutions in attention."""

import torch
from torch import nn
from tranception_pytorch import Tranception


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Tranception(dim=128, depth=3, heads=8, dim_head=16)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 21, (2, 100))]


def get_init_inputs():
    return []
