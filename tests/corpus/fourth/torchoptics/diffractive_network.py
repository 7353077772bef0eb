"""A diffractive neural network of torchoptics: light goes through phase masks and a lens, and the
weighted power in the last plane is the score of a class."""

import torch
from torchoptics import Field, System
from torchoptics.elements import Lens, LinearDetector, PhaseModulator
from torchoptics.profiles import gaussian


class Model(torch.nn.Module):
    def __init__(self, size, layers, classes):
        super().__init__()
        self.spacing, self.wavelength = 10e-6, 700e-9
        parts = [
            PhaseModulator(
                torch.nn.Parameter(torch.rand(size, size) * 6.28),
                z=0.05 * (i + 1),
                spacing=self.spacing,
            )
            for i in range(layers)
        ]
        last = 0.05 * (layers + 1)
        self.system = System(
            *parts, Lens((size, size), focal_length=0.1, z=last, spacing=self.spacing)
        )
        self.detector = LinearDetector(
            torch.nn.Parameter(torch.rand(classes, size, size)), z=last + 0.1, spacing=self.spacing
        )
        self.last = last + 0.1
        self.register_buffer("beam", gaussian((size, size), 3e-4, self.wavelength, 0, self.spacing))

    def forward(self, picture):
        field = Field(picture * self.beam, self.wavelength, z=0, spacing=self.spacing)
        seen = self.system.measure_at_z(field, z=self.last)
        return seen.data, self.detector(seen).log()


def get_inputs():
    return [torch.rand(2, 64, 64) + 0j]


def get_init_inputs():
    return [64, 3, 10]
