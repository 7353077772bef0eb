"""Uniformer for video: convolution and attention stages."""

import torch
from torch import nn
from uniformer_pytorch import Uniformer


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Uniformer(
            num_classes=100,
            dims=(32, 64, 128, 160),
            depths=(1, 2, 2, 1),
            mhsa_types=("l", "l", "g", "g"),
            dim_head=32,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 3, 4, 64, 64)]


def get_init_inputs():
    return []
