"""Mel-band RoFormer: overlapping bands of a spectrogram, attention over time and over bands,
masks, waveform back."""

import torch
from bs_roformer import MelBandRoformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = MelBandRoformer(
            dim,
            depth=depth,
            time_transformer_depth=1,
            freq_transformer_depth=1,
            linear_transformer_depth=0,
            num_bands=20,
            dim_head=16,
            heads=4,
            flash_attn=False,
            dim_freqs_in=257,
            stft_n_fft=512,
            stft_hop_length=128,
            stft_win_length=512,
        )

    def forward(self, audio):
        return self.net(audio)


def get_inputs():
    return [torch.randn(1, 8192)]


def get_init_inputs():
    return [32, 2]
