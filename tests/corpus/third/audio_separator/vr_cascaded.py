"""Vocal remover of audio-separator: five U-Nets in three stages, low and high band apart, LSTMs."""

import torch
from audio_separator.separator.uvr_lib_v5.vr_network.nets_new import CascadedNet


class Model(torch.nn.Module):
    def __init__(self, n_fft, channels, lstm):
        super().__init__()
        self.net = CascadedNet(n_fft, nn_arch_size=51000, nout=channels, nout_lstm=lstm)

    def forward(self, spectrogram):
        return self.net.predict(spectrogram)


def get_inputs():
    return [torch.rand(1, 2, 1025, 160)]


def get_init_inputs():
    return [2048, 32, 128]
