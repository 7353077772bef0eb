"""pi-VAE with a flow as decoder of spike rates, from pi-vae-pytorch."""

import torch
from pi_vae_pytorch import PiVAE
from torch import nn


class Model(nn.Module):
    def __init__(self, neurons, labels, latents):
        super().__init__()
        self.model = PiVAE(x_dim=neurons, u_dim=labels, z_dim=latents, discrete_labels=False)

    def forward(self, activity, labels):
        return self.model(activity, labels)


def get_inputs():
    return [torch.poisson(torch.full((64, 100), 2.0)), torch.randn(64, 3)]


def get_init_inputs():
    return [100, 3, 2]
