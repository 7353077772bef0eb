"""Time scattering of speech: wavelet modulus of two orders, logarithm, mean over time and a linear
classifier, as in the package's spoken-digit example."""

import torch
from kymatio.torch import Scattering1D


class Model(torch.nn.Module):
    def __init__(self, length, scales, wavelets, classes):
        super().__init__()
        self.scattering = Scattering1D(J=scales, shape=length, Q=wavelets)
        size = self.scattering.output_size() - 1
        self.norm = torch.nn.BatchNorm1d(size)
        self.head = torch.nn.Linear(size, classes)

    def forward(self, audio):
        x = self.scattering(audio)[:, 1:]
        x = torch.log(x.abs() + 1e-6).mean(dim=-1)
        return torch.log_softmax(self.head(self.norm(x)), dim=1)


def get_inputs():
    return [torch.randn(4, 2**13)]


def get_init_inputs():
    return [2**13, 8, 12, 10]
