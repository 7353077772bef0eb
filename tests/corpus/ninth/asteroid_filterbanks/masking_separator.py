"""Two speakers separated by masks on a learnt filterbank, from asteroid_filterbanks."""

import torch
from asteroid_filterbanks import AnalyticFreeFB, Decoder, Encoder
from asteroid_filterbanks.transforms import apply_mag_mask, mag
from torch import nn


class Model(nn.Module):
    def __init__(self, filters, kernel, speakers):
        super().__init__()
        self.encoder = Encoder(AnalyticFreeFB(filters, kernel, stride=kernel // 2))
        self.decoder = Decoder(AnalyticFreeFB(filters, kernel, stride=kernel // 2))
        half = filters // 2
        self.rnn = nn.LSTM(half, 128, bidirectional=True, batch_first=True)
        self.mask = nn.Linear(256, speakers * half)
        self.speakers = speakers

    def forward(self, wave):
        spec = self.encoder(wave)
        magnitude = mag(spec)
        hidden, _ = self.rnn(magnitude.transpose(1, 2))
        mask = self.mask(hidden).sigmoid().transpose(1, 2)
        mask = mask.unflatten(1, (self.speakers, -1))
        return self.decoder(apply_mag_mask(spec[:, None], mask), length=wave.shape[-1])


def get_inputs():
    return [torch.randn(2, 1, 8000)]


def get_init_inputs():
    return [256, 32, 2]
