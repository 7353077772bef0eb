"""Clifford ResNet for a two-dimensional fluid: pressure and velocity as one multivector field."""

import torch
from cliffordlayers.models.models_2d import CliffordBasicBlock2d, CliffordNet2d
from torch.nn.functional import gelu


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = CliffordNet2d(
            g=[1, 1],
            block=CliffordBasicBlock2d,
            num_blocks=[1, 1, 1],
            in_channels=4,
            out_channels=1,
            hidden_channels=channels,
            activation=gelu,
            norm=True,
            rotation=False,
        )

    def forward(self, field):
        return self.net(field)


def get_inputs():
    return [torch.randn(2, 4, 48, 48, 3)]


def get_init_inputs():
    return [16]
