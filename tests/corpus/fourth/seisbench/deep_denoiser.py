"""DeepDenoiser of SeisBench on the short-time spectrum of a seismogram: masks of signal and of
noise, and the separated waveforms."""

import torch
from seisbench.models import DeepDenoiser


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DeepDenoiser()
        self.register_buffer("window", torch.hann_window(30))

    def forward(self, trace):
        bins = torch.stft(
            trace, 60, hop_length=15, win_length=30, window=self.window, return_complex=True
        )
        real, imaginary = bins.real, bins.imag
        scale = real.std(dim=(1, 2), keepdim=True)
        masks = self.net(torch.stack([real, imaginary], dim=1) / scale)
        parts = [
            torch.istft(bins * masks[:, i], 60, hop_length=15, win_length=30, window=self.window)
            for i in range(2)
        ]
        return masks, *parts


def get_inputs():
    return [torch.randn(2, 3000)]


def get_init_inputs():
    return []
