"""Solid harmonic scattering of charge densities in three dimensions, as for molecular energies,
with a linear regression on top."""

import torch
from kymatio.torch import HarmonicScattering3D


class Model(torch.nn.Module):
    def __init__(self, size, scales, degree):
        super().__init__()
        self.scattering = HarmonicScattering3D(
            J=scales,
            shape=(size, size, size),
            L=degree,
            sigma_0=1.0,
            integral_powers=[0.5, 1.0, 2.0],
        )
        self.head = torch.nn.LazyLinear(1)
        with torch.no_grad():
            self(torch.zeros(1, size, size, size))

    def forward(self, density):
        return self.head(self.scattering(density).flatten(1))


def get_inputs():
    return [torch.rand(2, 32, 32, 32)]


def get_init_inputs():
    return [32, 2, 3]
