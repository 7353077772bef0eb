"""Uformer: a U-shaped transformer with windows and convolutions between its linear layers, with an
embedding of a diffusion time."""

import torch
from uformer_pytorch import Uformer


class Model(torch.nn.Module):
    def __init__(self, dim, stages):
        super().__init__()
        self.net = Uformer(
            dim=dim,
            stages=stages,
            num_blocks=2,
            window_size=8,
            dim_head=32,
            heads=4,
            ff_mult=4,
            time_emb=True,
            input_channels=3,
            output_channels=3,
        )

    def forward(self, image, time):
        return image + self.net(image, time=time)


def get_inputs():
    return [torch.randn(1, 3, 64, 64), torch.tensor([17.0])]


def get_init_inputs():
    return [32, 3]
