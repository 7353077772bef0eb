"""A U-Net for diffusion of raw audio: one step, conditioned on the time and on a text."""

import torch
from audio_diffusion_pytorch import UNetV0


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = UNetV0(
            dim=1,
            in_channels=2,
            channels=[16, 32, 64, 128, width],
            factors=[1, 4, 4, 4, 2],
            items=[1, 1, 2, 2, 2],
            attentions=[0, 0, 0, 1, 1],
            cross_attentions=[0, 0, 0, 1, 1],
            attention_heads=4,
            attention_features=32,
            modulation_features=256,
            embedding_features=96,
        )

    def forward(self, audio, time, text):
        return self.net(audio, time, embedding=text)


def get_inputs():
    return [torch.randn(1, 2, 4096), torch.rand(1), torch.randn(1, 16, 96)]


def get_init_inputs():
    return [256]
