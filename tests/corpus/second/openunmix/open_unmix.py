"""Open-Unmix for one source: dense layers around a bidirectional LSTM of 3 layers, over a
spectrogram."""

import torch
from openunmix.model import OpenUnmix


class Model(torch.nn.Module):
    def __init__(self, bins, hidden):
        super().__init__()
        self.net = OpenUnmix(
            nb_bins=bins, nb_channels=2, hidden_size=hidden, nb_layers=3, max_bin=bins // 2
        )

    def forward(self, spectrogram):
        return self.net(spectrogram)


def get_inputs():
    return [torch.rand(1, 2, 513, 40)]


def get_init_inputs():
    return [513, 128]
