"""braindecode's LaBraM: patches of each electrode, a temporal encoder and transformer blocks."""

import torch
from braindecode.models import Labram


class Model(torch.nn.Module):
    def __init__(self, layers, classes):
        super().__init__()
        self.net = Labram(
            n_chans=128,
            n_outputs=classes,
            n_times=400,
            sfreq=200,
            num_layers=layers,
            num_heads=4,
            embed_dim=64,
            patch_size=200,
        )

    def forward(self, signals):
        return self.net(signals)


def get_inputs():
    return [torch.randn(1, 128, 400)]


def get_init_inputs():
    return [3, 4]
