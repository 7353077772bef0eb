"""A constant-Q transform by octaves: the signal halved by a low pass, complex kernels on each
octave."""

import torch
from nnAudio.features import CQT2010v2


class Model(torch.nn.Module):
    def __init__(self, rate, hop, bins):
        super().__init__()
        self.cqt = CQT2010v2(
            sr=rate, hop_length=hop, n_bins=bins, bins_per_octave=12, verbose=False
        )

    def forward(self, audio):
        return torch.log1p(self.cqt(audio))


def get_inputs():
    return [torch.randn(1, 22050)]


def get_init_inputs():
    return [22050, 512, 60]
