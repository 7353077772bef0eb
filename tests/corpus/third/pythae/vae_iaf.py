"""Pythae's VAE with inverse autoregressive flows behind the encoder: MADE layers, batch norm
between them, and a reconstruction from seeded noise."""

import torch
from pythae.models import VAE_IAF, VAE_IAF_Config
from pythae.models.nn.benchmarks.mnist import Decoder_ResNet_AE_MNIST, Encoder_ResNet_VAE_MNIST


class Model(torch.nn.Module):
    def __init__(self, latent, blocks):
        super().__init__()
        config = VAE_IAF_Config(
            input_dim=(1, 28, 28),
            latent_dim=latent,
            n_made_blocks=blocks,
            n_hidden_in_made=3,
            hidden_size=64,
            include_batch_norm=True,
        )
        self.net = VAE_IAF(
            config, Encoder_ResNet_VAE_MNIST(config), Decoder_ResNet_AE_MNIST(config)
        )

    def forward(self, images):
        out = self.net({"data": images})
        return out.loss, out.recon_x, out.z


def get_inputs():
    return [torch.rand(4, 1, 28, 28)]


def get_init_inputs():
    return [16, 3]
