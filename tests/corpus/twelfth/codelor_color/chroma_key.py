"""Chroma-key segmentation: ConvNeXt stem, transformer conditioned on a colour, gated decoder."""

import torch
from codelor_color import CodelorColor
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = CodelorColor(dim=dim, depth=depth, heads=4, tied_after=2)

    def forward(self, image, color):
        return self.model(image, color)


def get_inputs():
    return [torch.rand(1, 3, 64, 64), torch.rand(1, 3)]


def get_init_inputs():
    return [64, 4]
