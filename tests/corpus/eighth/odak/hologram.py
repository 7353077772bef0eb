"""U-Net of odak that gives a phase hologram, propagated by the angular spectrum."""

import torch
from odak.learn.models import unet
from odak.learn.wave import generate_complex_field, propagate_beam, wavenumber
from torch import nn


class Model(nn.Module):
    def __init__(self, depth, width, distance):
        super().__init__()
        self.net = unet(depth=depth, dimensions=width, input_channels=1, output_channels=1)
        self.distance = distance

    def forward(self, target):
        phase = 2 * torch.pi * torch.sigmoid(self.net(target))[0, 0]
        field = generate_complex_field(torch.ones_like(phase), phase)
        image = propagate_beam(
            field,
            wavenumber(515e-9),
            self.distance,
            8e-6,
            515e-9,
            propagation_type="Angular Spectrum",
            zero_padding=[True, False, True],
        )
        return phase, image.abs().square()


def get_inputs():
    return [torch.rand(1, 1, 96, 96)]


def get_init_inputs():
    return [3, 16, 0.05]
