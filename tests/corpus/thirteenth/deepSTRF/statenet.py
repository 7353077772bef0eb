"""deepSTRF: StateNet, a recurrent model of auditory neurons on spectrograms."""

import torch
from deepSTRF.models.audio.audio_zoo import StateNet
from torch import nn


class Model(nn.Module):
    def __init__(self, bands, neurons):
        super().__init__()
        self.model = StateNet(
            n_frequency_bands=bands,
            temporal_window_size=1,
            kernel_size=7,
            stride=3,
            hidden_channels=7,
            connectivity="LC",
            rnn_type="GRU",
            out_neurons=neurons,
        )

    def forward(self, spectrogram):
        return self.model(spectrogram)


def get_inputs():
    return [torch.rand(2, 1, 34, 100)]


def get_init_inputs():
    return [34, 20]
