"""Registration of two images with icon-registration: a coarse displacement field from a U-Net, a
second one after warping, and the picture that their composition warps."""

import torch
from icon_registration import (
    DownsampleRegistration,
    FunctionFromVectorField,
    TwoStepRegistration,
)
from icon_registration.networks import tallUNet2


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        coarse = DownsampleRegistration(FunctionFromVectorField(tallUNet2(dimension=2)), 2)
        fine = FunctionFromVectorField(tallUNet2(dimension=2))
        self.net = TwoStepRegistration(coarse, fine)
        self.net.assign_identity_map([1, 1, size, size])

    def forward(self, moving, fixed):
        transform = self.net(moving, fixed)
        phi = transform(self.net.identity_map)
        return phi, self.net.as_function(moving)(phi)


def get_inputs():
    return [torch.rand(1, 1, 96, 96), torch.rand(1, 1, 96, 96)]


def get_init_inputs():
    return [96]
