"""SNAC for music: local windows of attention between the convolutions, codes at four rates."""

import torch
from snac import SNAC


class Model(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        self.codec = SNAC(
            44100, 16, [3, 3, 7, 7], None, 256, [7, 7, 3, 3], window, 1024, 8, [8, 4, 2, 1]
        )

    def forward(self, audio):
        audio, codes = self.codec(audio)
        return audio, *codes


def get_inputs():
    return [torch.randn(1, 1, 28224)]


def get_init_inputs():
    return [8]
