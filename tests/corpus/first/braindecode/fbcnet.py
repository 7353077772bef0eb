"""braindecode's FBCNet: a bank of filters over an EEG, spatial convolutions and the logarithm
of variances."""

import torch
from braindecode.models import FBCNet


class Model(torch.nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.net = FBCNet(n_chans=channels, n_outputs=classes, n_times=500, sfreq=125)

    def forward(self, signals):
        return self.net(signals)


def get_inputs():
    return [torch.randn(2, 12, 500)]


def get_init_inputs():
    return [12, 4]
