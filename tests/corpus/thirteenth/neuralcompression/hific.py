"""HiFiC: the high-fidelity generative image compression autoencoder."""

import torch
from neuralcompression.models import HiFiCAutoencoder
from torch import nn


class Model(nn.Module):
    def __init__(self, latent, hyper, blocks):
        super().__init__()
        self.model = HiFiCAutoencoder(
            latent_features=latent, hyper_features=hyper, num_residual_blocks=blocks
        )

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [64, 96, 1]
