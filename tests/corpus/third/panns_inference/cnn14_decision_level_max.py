"""PANN for sound events: Cnn14 that pools after its decisions, so that it gives framewise tags,
interpolated back to the spectrogram's frames."""

import torch
from panns_inference.models import Cnn14_DecisionLevelMax


class Model(torch.nn.Module):
    def __init__(self, rate, classes):
        super().__init__()
        self.net = Cnn14_DecisionLevelMax(
            sample_rate=rate,
            window_size=1024,
            hop_size=320,
            mel_bins=64,
            fmin=50,
            fmax=14000,
            classes_num=classes,
            interpolate_mode="nearest",
        )

    def forward(self, waveform):
        return self.net(waveform)


def get_inputs():
    return [torch.randn(1, 48000)]


def get_init_inputs():
    return [32000, 50]
