"""demucs' Demucs: a U-Net of the wave with an LSTM at its bottom, resampled twice."""

import torch
from demucs.demucs import Demucs


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = Demucs(
            ["drums", "bass"], channels=channels, depth=4, lstm_layers=2, dconv_mode=1
        )

    def forward(self, mix):
        return self.net(mix)


def get_inputs():
    return [torch.randn(1, 2, 11025)]


def get_init_inputs():
    return [16]
