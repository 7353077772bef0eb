"""perceiver-pytorch's Perceiver of images, Fourier-encoded, its layers shared."""

import torch
from perceiver_pytorch import Perceiver


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Perceiver(
            num_freq_bands=6,
            depth=3,
            max_freq=10.0,
            num_latents=32,
            latent_dim=64,
            cross_dim_head=16,
            latent_heads=4,
            latent_dim_head=16,
            num_classes=10,
            weight_tie_layers=True,
            self_per_cross_attn=2,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 32, 32, 3)]


def get_init_inputs():
    return []
