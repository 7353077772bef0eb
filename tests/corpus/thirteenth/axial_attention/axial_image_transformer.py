"""Axial image transformer, attention over the rows and the columns."""

import torch
from axial_attention import AxialImageTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, 4, stride=4)
        self.model = AxialImageTransformer(
            dim=dim, depth=depth, heads=4, reversible=False, axial_pos_emb_shape=(24, 24)
        )

    def forward(self, img):
        return self.model(self.stem(img))


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return [96, 3]
