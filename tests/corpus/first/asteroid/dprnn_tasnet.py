"""asteroid's DPRNNTasNet: two speakers' waves by LSTMs along and across chunks."""

import torch
from asteroid.models import DPRNNTasNet


class Model(torch.nn.Module):
    def __init__(self, channels, repeats):
        super().__init__()
        self.net = DPRNNTasNet(
            2, bn_chan=channels, hid_size=channels, chunk_size=20, n_repeats=repeats
        )

    def forward(self, wave):
        return self.net(wave)


def get_inputs():
    return [torch.randn(1, 4000)]


def get_init_inputs():
    return [48, 3]
