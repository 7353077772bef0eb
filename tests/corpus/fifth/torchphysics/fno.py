"""Fourier neural operator on a 2-D grid with skip connections, inputs as TorchPhysics points."""

import torch
import torchphysics as tp


class Model(torch.nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        self.source = tp.spaces.R2("x") * tp.spaces.R1("f")
        self.net = tp.models.FNO(
            tp.spaces.R3("f"),
            tp.spaces.R1("u"),
            fourier_layers=layers,
            hidden_channels=channels,
            fourier_modes=(12, 12),
            skip_connections=True,
            space_resolution=48,
        )

    def forward(self, field):
        points = tp.spaces.Points(field, tp.spaces.R3("f"))
        return self.net(points).as_tensor


def get_inputs():
    return [torch.randn(2, 48, 48, 3)]


def get_init_inputs():
    return [24, 4]
