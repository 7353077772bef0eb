"""torchaudio's Conformer: padded frames through feed forward, attention and convolution."""

import torch
from torchaudio.models import Conformer


class Model(Conformer):
    pass


def get_inputs():
    return [torch.randn(3, 60, 80), torch.tensor([60, 45, 20])]


def get_init_inputs():
    return [80, 4, 160, 3, 15]
