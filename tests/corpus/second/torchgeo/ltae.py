"""A lightweight temporal attention encoder: one master query for each head over 12 dates of a
pixel."""

import torch
from torchgeo.models import LTAE


class Model(torch.nn.Module):
    def __init__(self, channels, dates):
        super().__init__()
        self.net = LTAE(
            in_channels=channels,
            n_head=8,
            d_k=8,
            n_neurons=(128, 64),
            d_model=128,
            len_max_seq=dates,
        )

    def forward(self, pixels):
        return self.net(pixels)


def get_inputs():
    return [torch.randn(32, 12, 64)]


def get_init_inputs():
    return [64, 12]
