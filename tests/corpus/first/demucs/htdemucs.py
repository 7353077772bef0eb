"""demucs' HTDemucs: the hybrid U-Net with a transformer across both branches."""

import torch
from demucs.htdemucs import HTDemucs


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = HTDemucs(
            ["drums", "vocals"],
            channels=channels,
            nfft=1024,
            t_layers=3,
            t_heads=4,
            bottom_channels=64,
            segment=0.5,
            samplerate=22050,
        )

    def forward(self, mix):
        return self.net(mix)


def get_inputs():
    return [torch.randn(1, 2, 11025)]


def get_init_inputs():
    return [16]
