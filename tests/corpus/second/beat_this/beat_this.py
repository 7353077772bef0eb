"""Beat This!: rotary attention over time and over frequency in the stem, then a transformer;
beats and downbeats."""

import torch
from beat_this.model.beat_tracker import BeatThis


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.net = BeatThis(spect_dim=128, transformer_dim=dim, n_layers=layers, stem_dim=32)

    def forward(self, spectrogram):
        return self.net(spectrogram)


def get_inputs():
    return [torch.rand(1, 100, 128)]


def get_init_inputs():
    return [128, 3]
