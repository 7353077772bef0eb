"""torchaudio's WaveRNN: samples by two GRUs that are told the spectrogram, upsampled by
residual networks."""

import torch
from torchaudio.models import WaveRNN


class Model(WaveRNN):
    pass


def get_inputs():
    return [torch.randn(2, 1, (14 - 5 + 1) * 40), torch.randn(2, 1, 32, 14)]


def get_init_inputs():
    return [[5, 8], 64, 40, 3, 64, 64, 5, 32, 32, 32]
