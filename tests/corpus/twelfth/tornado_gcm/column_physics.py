"""Learned physics of an atmosphere: vertical convolutions, an MLP tower in each column."""

import torch
from torch import nn
from tornado_gcm.neural.standard_layers import Epd, Mlp, MlpUniform
from tornado_gcm.neural.towers import ColumnTower, VerticalConvTower


class Model(nn.Module):
    def __init__(self, channels, levels, outputs):
        super().__init__()
        self.vertical = VerticalConvTower(channels, 16, [32, 32])
        self.column = ColumnTower(
            Epd(
                encode=Mlp(16 * levels, 64, intermediate_sizes=(64,)),
                decode=Mlp(64, outputs * levels, intermediate_sizes=(64,)),
                process_blocks=[
                    MlpUniform(64, 64, hidden_size=64, n_hidden_layers=2) for _ in range(3)
                ],
            )
        )

    def forward(self, x):
        return self.column(self.vertical(x).transpose(0, 1))


def get_inputs():
    return [torch.randn(8, 6, 16, 8)]


def get_init_inputs():
    return [8, 6, 4]
