"""Nanospeech: the diffusion transformer of a flow-matching text to speech model."""

import torch
from nanospeech.nanospeech_torch import DiT
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = DiT(
            dim=dim,
            depth=depth,
            heads=4,
            dim_head=64,
            ff_mult=2,
            text_dim=128,
            text_num_embeds=256,
            conv_layers=2,
        )

    def forward(self, x, cond, text, time):
        return self.model(x, cond, text, time, drop_audio_cond=False, drop_text=False)


def get_inputs():
    return [
        torch.randn(1, 120, 100),
        torch.randn(1, 120, 100),
        torch.randint(0, 255, (1, 30)),
        torch.rand(1),
    ]


def get_init_inputs():
    return [256, 4]
