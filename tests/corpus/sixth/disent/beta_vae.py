"""Beta-VAE for disentanglement, from disent: a picture's latent mean and spread, and its picture
again."""

import torch
from disent.model import AutoEncoder
from disent.model.ae import DecoderConv64, EncoderConv64


class Model(torch.nn.Module):
    def __init__(self, latents):
        super().__init__()
        shape = (3, 64, 64)
        self.model = AutoEncoder(
            encoder=EncoderConv64(x_shape=shape, z_size=latents, z_multiplier=2),
            decoder=DecoderConv64(x_shape=shape, z_size=latents),
        )

    def forward(self, image):
        mean, logvar = self.model.encode(image, chunk=True)
        sample = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        kl = 0.5 * (mean**2 + logvar.exp() - 1 - logvar).sum(dim=1)
        return self.model.decode(sample).sigmoid(), mean, kl


def get_inputs():
    return [torch.rand(4, 3, 64, 64)]


def get_init_inputs():
    return [10]
