"""MossFormer's mask network for separating speakers: gated single-head attention, quadratic within
chunks and linear across them, with convolutional projections."""

import torch
from funasr.models.mossformer.mossformer_encoder import (
    MossFormer_MaskNet,
    MossFormerEncoder,
)


class Model(torch.nn.Module):
    def __init__(self, channels, blocks):
        super().__init__()
        self.encoder = MossFormerEncoder(kernel_size=16, out_channels=channels, in_channels=1)
        self.masks = MossFormer_MaskNet(channels, channels, num_blocks=blocks, num_spks=2)

    def forward(self, waveform):
        mixture = self.encoder(waveform)
        return self.masks(mixture) * mixture


def get_inputs():
    return [torch.randn(1, 6400)]


def get_init_inputs():
    return [128, 4]
