"""PINA's Fourier neural operator in two dimensions: lifting, spectral layers, projection."""

import torch
from pina.model import FNO


class Model(torch.nn.Module):
    def __init__(self, fields, modes, width):
        super().__init__()
        self.model = FNO(
            lifting_net=torch.nn.Linear(fields, width),
            projecting_net=torch.nn.Linear(width, 1),
            n_modes=modes,
            dimensions=2,
            inner_size=width,
            n_layers=4,
            padding=8,
        )

    def forward(self, field):
        return self.model(field)


def get_inputs():
    return [torch.randn(2, 64, 64, 3)]


def get_init_inputs():
    return [3, 12, 32]
