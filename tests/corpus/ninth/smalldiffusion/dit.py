"""Diffusion transformer of smalldiffusion, conditioned on a class, in a few steps of sampling."""

import torch
from smalldiffusion.model import CondEmbedderLabel
from smalldiffusion.model_dit import DiT
from torch import nn


class Model(nn.Module):
    def __init__(self, side, heads, depth, steps):
        super().__init__()
        width = 32 * heads
        self.model = DiT(
            in_dim=side,
            channels=3,
            patch_size=2,
            depth=depth,
            head_dim=32,
            num_heads=heads,
            cond_embed=CondEmbedderLabel(width, 10),
        )
        for weight in self.model.parameters():
            if not weight.any():
                nn.init.normal_(weight, std=0.02)
        self.register_buffer("sigmas", torch.logspace(1, -1.5, steps))

    def forward(self, noise, labels):
        x = noise * self.sigmas[0]
        for i in range(len(self.sigmas) - 1):
            eps = self.model(x, self.sigmas[i], cond=labels)
            x = x + (self.sigmas[i + 1] - self.sigmas[i]) * eps
        return x


def get_inputs():
    return [torch.randn(2, 3, 32, 32), torch.tensor([3, 7])]


def get_init_inputs():
    return [32, 6, 6, 4]
