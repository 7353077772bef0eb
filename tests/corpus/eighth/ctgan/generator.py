"""Generator of CTGAN with its residual layers for rows of a table."""

import torch
from ctgan.synthesizers.ctgan import Generator
from torch import nn


class Model(nn.Module):
    def __init__(self, noise, widths, columns):
        super().__init__()
        self.model = Generator(noise, widths, columns)

    def forward(self, noise):
        return self.model(noise)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128, (256, 256), 90]
