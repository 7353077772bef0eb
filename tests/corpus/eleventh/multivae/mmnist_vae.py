"""Convolutional encoder and decoder of a multimodal VAE."""

import torch
from multivae.models.nn.mmnist import DecoderResnetMMNIST, EncoderResnetMMNIST
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = EncoderResnetMMNIST(private_latent_dim=16, shared_latent_dim=16)
        self.decoder = DecoderResnetMMNIST(latent_dim=32)

    def forward(self, x):
        code = self.encoder(x)
        z = torch.cat([code.embedding, code.style_embedding], dim=-1)
        return self.decoder(z).reconstruction, code.log_covariance


def get_inputs():
    return [torch.rand(2, 3, 28, 28)]


def get_init_inputs():
    return []
