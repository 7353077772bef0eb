"""Gravitational waves: strain is whitened, and its Q transform goes to a ResNet."""

import torch
from ml4gw.nn.resnet import ResNet2D
from ml4gw.transforms import SingleQTransform, SpectralDensity, Whiten


class Model(torch.nn.Module):
    def __init__(self, detectors):
        super().__init__()
        rate = 1024
        self.density = SpectralDensity(rate, 1.0, average="median", fast=True)
        self.whiten = Whiten(1.0, rate, highpass=20.0)
        self.transform = SingleQTransform(2.0, rate, (64, 64), q=12, frange=[20, 400])
        self.net = ResNet2D(detectors, layers=[2, 2, 2, 2], classes=1, width_per_group=64)

    def forward(self, strain, background):
        density = self.density(background.double())
        white = self.whiten(strain.double(), density).float()
        image = self.transform(white)
        return white, image, self.net(image)


def get_inputs():
    return [torch.randn(2, 2, 3072), torch.randn(2, 2, 16384)]


def get_init_inputs():
    return [2]
