"""NCSN++ of score-models: the score of a noisy image under a variance-exploding diffusion."""

import torch
from score_models import NCSNpp
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.model = NCSNpp(
            sde="vesde",
            sigma_min=1e-2,
            sigma_max=50.0,
            channels=1,
            dimensions=2,
            nf=width,
            ch_mult=(1, 2, 2),
            num_res_blocks=1,
        )

    def forward(self, t, image):
        return self.model(t, image)


def get_inputs():
    return [torch.rand(2), torch.randn(2, 1, 32, 32)]


def get_init_inputs():
    return [64]
