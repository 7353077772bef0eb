"""DiffWave vocoder: 30 dilated gated layers over noisy audio, mel spectrogram and diffusion
step."""

import torch
from diffwave.model import DiffWave
from diffwave.params import AttrDict, params


class Model(torch.nn.Module):
    def __init__(self, layers, channels):
        super().__init__()
        settings = AttrDict(params)
        settings.override({"residual_layers": layers, "residual_channels": channels})
        self.net = DiffWave(settings)
        # The package starts the last layer at zero: the output would say nothing.
        torch.nn.init.normal_(self.net.output_projection.weight, std=0.1)

    def forward(self, audio, mel, step):
        return self.net(audio, mel, step)


def get_inputs():
    return [torch.randn(2, 40 * 256), torch.rand(2, 80, 40), torch.tensor([3, 41])]


def get_init_inputs():
    return [30, 64]
