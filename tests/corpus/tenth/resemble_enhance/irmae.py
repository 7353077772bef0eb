"""Implicit rank minimizing autoencoder of mel spectra, from resemble-enhance."""

import torch
from resemble_enhance.enhancer.lcfm.irmae import IRMAE
from torch import nn


class Model(nn.Module):
    def __init__(self, mels, latents):
        super().__init__()
        self.model = IRMAE(input_dim=mels, output_dim=mels, latent_dim=latents, hidden_dim=128)

    def forward(self, mel):
        output = self.model(mel)
        return output.latent, output.decoded


def get_inputs():
    return [torch.randn(2, 80, 96)]


def get_init_inputs():
    return [80, 32]
