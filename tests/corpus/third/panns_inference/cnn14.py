"""PANN Cnn14: log-mel spectrogram by convolution, a VGG over it and tags of AudioSet."""

import torch
from panns_inference.models import Cnn14


class Model(torch.nn.Module):
    def __init__(self, rate, classes):
        super().__init__()
        self.net = Cnn14(
            sample_rate=rate,
            window_size=512,
            hop_size=160,
            mel_bins=64,
            fmin=50,
            fmax=8000,
            classes_num=classes,
        )

    def forward(self, waveform):
        return self.net(waveform)


def get_inputs():
    return [torch.randn(2, 16000)]


def get_init_inputs():
    return [16000, 50]
