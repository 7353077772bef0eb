"""DDPM's U-Net of score-models under a variance-preserving diffusion."""

import torch
from score_models import DDPM
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.model = DDPM(
            sde="vpsde",
            beta_min=1e-2,
            beta_max=20.0,
            channels=2,
            dimensions=2,
            nf=width,
            ch_mult=(1, 2, 2),
            num_res_blocks=2,
        )

    def forward(self, t, series):
        return self.model(t, series)


def get_inputs():
    return [torch.rand(2), torch.randn(2, 2, 32, 32)]


def get_init_inputs():
    return [64]
