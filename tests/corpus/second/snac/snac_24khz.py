"""SNAC: half a second of audio at 24 kHz to codes at three rates and back, with its noise
blocks."""

import torch
from snac import SNAC


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.codec = SNAC(
            sampling_rate=24000,
            encoder_dim=channels,
            encoder_rates=[2, 4, 8, 8],
            decoder_dim=16 * channels,
            decoder_rates=[8, 8, 4, 2],
            attn_window_size=None,
            vq_strides=[4, 2, 1],
        )

    def forward(self, audio):
        return self.codec(audio)


def get_inputs():
    return [torch.randn(1, 1, 12288)]


def get_init_inputs():
    return [24]
