"""Demucs for noisy speech: a waveform resampled by sinc, convolutions with GLUs, a causal LSTM,
skip connections."""

import torch
from denoiser.demucs import Demucs


class Model(torch.nn.Module):
    def __init__(self, hidden, depth):
        super().__init__()
        self.net = Demucs(hidden=hidden, depth=depth, resample=4)

    def forward(self, noisy):
        return self.net(noisy)


def get_inputs():
    return [torch.randn(1, 1, 8000)]


def get_init_inputs():
    return [24, 5]
