"""braindecode's ATCNet: windows of an EEG, each attended to and then convolved in time."""

import torch
from braindecode.models import ATCNet


class Model(torch.nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.net = ATCNet(
            n_chans=channels,
            n_outputs=classes,
            n_times=500,
            sfreq=125,
            input_window_seconds=4.0,
            n_windows=3,
        )

    def forward(self, signals):
        return self.net(signals)


def get_inputs():
    return [torch.randn(2, 16, 500)]


def get_init_inputs():
    return [16, 4]
