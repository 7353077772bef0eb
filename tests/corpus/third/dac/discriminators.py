"""The codec's discriminators: periods of the waveform, rates, and bands of complex spectrograms."""

import torch
from dac.model.discriminator import Discriminator


class Model(torch.nn.Module):
    def __init__(self, periods, ffts):
        super().__init__()
        self.net = Discriminator(rates=[1, 2], periods=periods, fft_sizes=ffts)

    def forward(self, audio):
        return self.net(audio)


def get_inputs():
    return [torch.randn(1, 1, 8192) * 0.3]


def get_init_inputs():
    return [[2, 3], [1024, 512]]
