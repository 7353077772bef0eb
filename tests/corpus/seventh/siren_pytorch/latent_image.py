"""SIREN: an image as a network of sines over coordinates, modulated by a latent vector."""

import torch
from siren_pytorch import SirenNet, SirenWrapper


class Model(torch.nn.Module):
    def __init__(self, latent, width, side):
        super().__init__()
        net = SirenNet(dim_in=2, dim_hidden=width, dim_out=3, num_layers=5, w0_initial=30.0)
        self.model = SirenWrapper(net, latent_dim=latent, image_width=side, image_height=side)

    def forward(self, latent):
        return self.model(latent=latent)


def get_inputs():
    return [torch.randn(512)]


def get_init_inputs():
    return [512, 256, 128]
