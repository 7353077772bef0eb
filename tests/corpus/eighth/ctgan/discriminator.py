"""Discriminator of CTGAN that sees several rows at once."""

import torch
from ctgan.synthesizers.ctgan import Discriminator
from torch import nn


class Model(nn.Module):
    def __init__(self, columns, widths, pac):
        super().__init__()
        self.model = Discriminator(columns, widths, pac=pac)

    def forward(self, rows):
        return self.model(rows)


def get_inputs():
    return [torch.randn(60, 90)]


def get_init_inputs():
    return [90, (256, 256), 10]
