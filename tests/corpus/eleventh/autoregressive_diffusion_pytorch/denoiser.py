"""The denoising MLP of autoregressive diffusion, conditioned on a state and a noise level."""

import torch
from autoregressive_diffusion_pytorch import MLP
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MLP(dim_cond=256, dim_input=128, depth=3, width=512)

    def forward(self, noised, times, cond):
        return self.model(noised, times=times, cond=cond)


def get_inputs():
    return [torch.randn(8, 128), torch.rand(8), torch.randn(8, 256)]


def get_init_inputs():
    return []
