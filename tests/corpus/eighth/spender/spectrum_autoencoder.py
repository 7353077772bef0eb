"""Encoder and decoder of galaxies' spectra from spender."""

import torch
from spender import SpectrumDecoder, SpectrumEncoder
from torch import nn


class Model(nn.Module):
    def __init__(self, latent, pixels):
        super().__init__()
        self.encode = SpectrumEncoder(None, latent)
        self.decode = SpectrumDecoder(torch.linspace(3000.0, 9000.0, pixels), latent)

    def forward(self, spectra):
        latent = self.encode(spectra)
        return latent, self.decode(latent)


def get_inputs():
    return [torch.rand(4, 2000)]


def get_init_inputs():
    return [6, 2400]
