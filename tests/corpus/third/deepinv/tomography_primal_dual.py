"""Learned primal-dual for computed tomography: Radon transform and back-projection unfolded.

Four iterations, each with a small network of its own for the image and one for the sinogram.
"""

import deepinv
import torch
from deepinv.models import PDNet_DualBlock, PDNet_PrimalBlock


class Model(torch.nn.Module):
    def __init__(self, angles, size, iterations):
        super().__init__()
        self.physics = deepinv.physics.Tomography(angles=angles, img_width=size, circle=False)
        self.primal = torch.nn.ModuleList(PDNet_PrimalBlock() for _ in range(iterations))
        self.dual = torch.nn.ModuleList(PDNet_DualBlock() for _ in range(iterations))

    def forward(self, sinogram):
        image = self.physics.A_adjoint(sinogram).repeat(1, 5, 1, 1) * 0
        dual = sinogram.repeat(1, 5, 1, 1) * 0
        for primal, other in zip(self.primal, self.dual, strict=True):
            dual = other(dual, self.physics.A(image[:, 1:2]), sinogram)
            image = primal(image, self.physics.A_adjoint(dual[:, :1]) / 100)
        return image[:, :1]


def get_inputs():
    return [torch.rand(1, 1, 91, 30)]


def get_init_inputs():
    return [30, 64, 4]
