"""Linear time-variant filter by complex cepstra, from neural-homomorphic-vocoder."""

import torch
from nhv.layer.module import CCepLTVFilter
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, hop):
        super().__init__()
        self.model = CCepLTVFilter(
            channels,
            conv_channels=64,
            ccep_size=40,
            fft_size=256,
            hop_size=hop,
            n_ltv_layers=2,
            ltv_postfilter_kernel_size=32,
        )

    def forward(self, mel, source):
        return self.model(mel, source)


def get_inputs():
    return [torch.randn(1, 30, 80), torch.randn(1, 1, 30 * 64)]


def get_init_inputs():
    return [80, 64]
