"""deepSTRF: a transformer model of auditory neurons on spectrograms."""

import torch
from deepSTRF.models.audio.audio_zoo import Transformer
from torch import nn


class Model(nn.Module):
    def __init__(self, bands, neurons):
        super().__init__()
        self.model = Transformer(
            n_frequency_bands=bands,
            time_patch_size=1,
            embedding_dim=48,
            n_heads=4,
            n_layers=3,
            out_neurons=neurons,
        )

    def forward(self, spectrogram):
        return self.model(spectrogram)


def get_inputs():
    return [torch.rand(2, 1, 34, 80)]


def get_init_inputs():
    return [34, 20]
