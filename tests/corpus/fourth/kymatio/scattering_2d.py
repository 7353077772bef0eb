"""Wavelet scattering of images, two orders, then batch norm and a linear classifier, as in the
package's CIFAR example: no learned filters."""

import torch
from kymatio.torch import Scattering2D


class Model(torch.nn.Module):
    def __init__(self, scales, size, classes):
        super().__init__()
        self.scattering = Scattering2D(J=scales, shape=(size, size), L=8)
        self.coefficients = 1 + scales * 8 + 64 * scales * (scales - 1) // 2
        self.side = size // 2**scales
        self.norm = torch.nn.BatchNorm2d(3 * self.coefficients)
        self.head = torch.nn.Linear(3 * self.coefficients * self.side**2, classes)

    def forward(self, image):
        x = self.scattering(image)
        x = x.view(x.size(0), 3 * self.coefficients, self.side, self.side)
        return self.head(self.norm(x).flatten(1))


def get_inputs():
    return [torch.rand(2, 3, 32, 32)]


def get_init_inputs():
    return [2, 32, 10]
