"""Descript audio codec: Snake convolutions, nine residual codebooks looked up in a small space."""

import torch
from dac.model.dac import DAC


class Model(torch.nn.Module):
    def __init__(self, encoder_dim, decoder_dim):
        super().__init__()
        self.net = DAC(encoder_dim=encoder_dim, decoder_dim=decoder_dim)

    def forward(self, audio):
        return self.net(audio, 44100)


def get_inputs():
    return [torch.randn(1, 1, 22000) * 0.3]


def get_init_inputs():
    return [32, 768]
