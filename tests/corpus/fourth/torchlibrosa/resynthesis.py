"""Speech enhancement on torchlibrosa: STFT and its inverse by convolution, a GRU that masks the
magnitude and keeps the phase."""

import torch
from torch import nn
from torchlibrosa.stft import ISTFT, STFT, magphase


class Model(nn.Module):
    def __init__(self, fft, hidden):
        super().__init__()
        self.stft = STFT(n_fft=fft, hop_length=fft // 4)
        self.istft = ISTFT(n_fft=fft, hop_length=fft // 4)
        bins = fft // 2 + 1
        self.norm = nn.LayerNorm(bins)
        self.gru = nn.GRU(bins, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.mask = nn.Linear(2 * hidden, bins)

    def forward(self, audio):
        real, imaginary = self.stft(audio)
        size, cos, sin = magphase(real, imaginary)
        seen = self.gru(self.norm(torch.log1p(size[:, 0])))[0]
        size = size * torch.sigmoid(self.mask(seen))[:, None]
        return self.istft(size * cos, size * sin, audio.shape[-1])


def get_inputs():
    return [torch.randn(2, 8000) * 0.1]


def get_init_inputs():
    return [512, 128]
