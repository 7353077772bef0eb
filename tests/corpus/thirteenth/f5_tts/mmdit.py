"""F5-TTS: the multimodal diffusion transformer, text and audio attend to each other."""

import torch
from f5_tts.model.backbones.mmdit import MMDiT
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = MMDiT(
            dim=dim, depth=depth, heads=4, dim_head=64, ff_mult=2, text_num_embeds=256
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
    return [256, 3]
