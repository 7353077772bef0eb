"""PhaseNet for earthquakes: a U-Net over seismograms of three components at a station, heads for
the phases, polarities and the event, with a spectrogram branch."""

import torch
from phasenet.models.phasenet import PhaseNet


class Model(torch.nn.Module):
    def __init__(self, stft):
        super().__init__()
        self.net = PhaseNet(
            backbone="unet", log_scale=True, add_stft=stft, add_polarity=True, add_event=True
        )

    def forward(self, data):
        return self.net({"data": data})


def get_inputs():
    return [torch.randn(2, 3, 1, 2048)]


def get_init_inputs():
    return [True]
