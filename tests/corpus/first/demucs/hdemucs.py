"""demucs' HDemucs: four sources of music, a U-Net of the wave and one of the spectrogram."""

import torch
from demucs.hdemucs import HDemucs


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = HDemucs(
            ["drums", "bass", "other", "vocals"], channels=channels, nfft=1024, depth=5
        )

    def forward(self, mix):
        return self.net(mix)


def get_inputs():
    return [torch.randn(1, 2, 44100 // 2)]


def get_init_inputs():
    return [16]
