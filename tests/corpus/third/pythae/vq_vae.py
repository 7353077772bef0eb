"""Pythae's VQ-VAE: convolutional encoder, a codebook kept by exponential averages, decoder and the
losses."""

import torch
from pythae.models import VQVAE, VQVAEConfig
from pythae.models.nn.benchmarks.cifar import Decoder_ResNet_VQVAE_CIFAR, Encoder_ResNet_VQVAE_CIFAR


class Model(torch.nn.Module):
    def __init__(self, latent, codes):
        super().__init__()
        config = VQVAEConfig(
            input_dim=(3, 32, 32),
            latent_dim=latent,
            num_embeddings=codes,
            use_ema=True,
            decay=0.99,
        )
        self.net = VQVAE(
            config, Encoder_ResNet_VQVAE_CIFAR(config), Decoder_ResNet_VQVAE_CIFAR(config)
        )

    def forward(self, images):
        out = self.net({"data": images})
        return out.loss, out.recon_x, out.z, out.quantized_indices


def get_inputs():
    return [torch.rand(4, 3, 32, 32)]


def get_init_inputs():
    return [64, 256]
