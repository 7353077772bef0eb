"""PESTO: harmonic constant-Q transform of audio, small residual net, Toeplitz layer: pitch."""

import torch
from pesto.data import Preprocessor
from pesto.model import PESTO, Resnet1d


class Model(torch.nn.Module):
    def __init__(self, rate):
        super().__init__()
        preprocessor = Preprocessor(
            hop_size=10.0,
            sampling_rate=rate,
            harmonics=[1],
            fmin=27.5,
            fmax=None,
            bins_per_semitone=3,
            n_bins=251,
            center_bins=True,
        )
        encoder = Resnet1d(
            n_chan_layers=[40, 30, 30, 10, 3],
            n_prefilt_layers=2,
            prefilt_kernel_size=39,
            residual=True,
            n_bins_in=219,
            output_dim=384,
            activation_fn="leaky",
        )
        self.net = PESTO(
            encoder, preprocessor, crop_kwargs={"min_steps": -16, "max_steps": 16}, reduction="alwa"
        )

    def forward(self, audio):
        return self.net(audio, convert_to_freq=True)


def get_inputs():
    return [torch.randn(2, 24000) * 0.1]


def get_init_inputs():
    return [16000]
