"""speechbrain's ECAPA-TDNN: frames of 80 mel bands to a speaker's embedding, one recording
shorter."""

import torch
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = ECAPA_TDNN(80, channels=[channels] * 4 + [3 * channels], lin_neurons=96)

    def forward(self, frames, lengths):
        return self.net(frames, lengths)


def get_inputs():
    return [torch.randn(2, 100, 80), torch.tensor([1.0, 0.7])]


def get_init_inputs():
    return [64]
