"""asteroid's DCUNet: a U-Net of complex convolutions and complex batch norms on a spectrogram."""

import torch
from asteroid.models import DCUNet


class Model(torch.nn.Module):
    def __init__(self, architecture):
        super().__init__()
        self.net = DCUNet(
            architecture,
            stft_n_filters=256,
            stft_kernel_size=256,
            stft_stride=64,
            fix_length_mode="pad",
        )

    def forward(self, wave):
        return self.net(wave)


def get_inputs():
    return [torch.randn(1, 4000)]


def get_init_inputs():
    return ["mini"]
