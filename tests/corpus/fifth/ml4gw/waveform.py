"""IMRPhenomD: the gravitational wave of a binary black hole in closed form, from its parameters."""

import torch
from ml4gw.waveforms import IMRPhenomD


class Model(torch.nn.Module):
    def __init__(self, points):
        super().__init__()
        self.wave = IMRPhenomD()
        frequencies = torch.linspace(20.0, 512.0, points)
        self.register_buffer("frequencies", frequencies)

    def forward(self, chirp_mass, mass_ratio, spins, distance, phase, inclination):
        cross, plus = self.wave(
            self.frequencies,
            chirp_mass,
            mass_ratio,
            spins[:, 0],
            spins[:, 1],
            distance,
            phase,
            inclination,
            f_ref=20.0,
        )
        return 1e23 * cross, 1e23 * plus


def get_inputs():
    return [
        20 + 20 * torch.rand(8),
        0.3 + 0.6 * torch.rand(8),
        1.6 * torch.rand(8, 2) - 0.8,
        400 + 800 * torch.rand(8),
        6.28 * torch.rand(8),
        3.14 * torch.rand(8),
    ]


def get_init_inputs():
    return [512]
