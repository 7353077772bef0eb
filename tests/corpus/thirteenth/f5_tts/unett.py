"""E2-TTS: the flat U-Net transformer of F5-TTS, with skip connections."""

import torch
from f5_tts.model.backbones.unett import UNetT
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = UNetT(
            dim=dim,
            depth=depth,
            heads=4,
            dim_head=64,
            ff_mult=2,
            text_num_embeds=256,
            text_dim=64,
            conv_layers=1,
        )

    def forward(self, x, cond, text, time):
        return self.model(x, cond, text, time)


def get_inputs():
    return [
        torch.randn(1, 80, 100),
        torch.randn(1, 80, 100),
        torch.randint(0, 255, (1, 20)),
        torch.rand(1),
    ]


def get_init_inputs():
    return [256, 4]
