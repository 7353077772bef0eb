"""Universal neural vocoder: recurrent network on mel frames and samples."""

import torch
from torch import nn
from univoc import Vocoder


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Vocoder(
            n_mels=80,
            conditioning_size=64,
            embedding_dim=64,
            rnn_size=128,
            fc_size=128,
            bits=8,
            hop_length=20,
            sr=16000,
        )

    def forward(self, x, mels):
        return self.model(x, mels)


def get_inputs():
    return [torch.randint(0, 256, (2, 200)), torch.randn(2, 10, 80)]


def get_init_inputs():
    return []
