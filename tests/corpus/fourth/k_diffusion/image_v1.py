"""Karras denoiser around the package's U-Net: skip, output and input scalings by sigma, adaptive
group norms, self-attention at the deep levels, cross attention to padded text."""

import os

import torch

os.environ["K_DIFFUSION_USE_COMPILE"] = "0"  # its own switch: no torch.compile

from k_diffusion.layers import Denoiser
from k_diffusion.models import ImageDenoiserModelV1


class Model(torch.nn.Module):
    def __init__(self, depths, channels):
        super().__init__()
        inner = ImageDenoiserModelV1(
            3,
            128,
            depths,
            channels,
            [False, True, True],
            [False, True, True],
            mapping_cond_dim=9,
            cross_cond_dim=96,
            dropout_rate=0.05,
        )
        for parameter in inner.parameters():
            if not parameter.any():  # starts as zero, and would hide all that lies before it
                torch.nn.init.normal_(parameter, std=0.02)
        self.net = Denoiser(inner, sigma_data=0.5)

    def forward(self, image, sigma, augmentation, text, padding):
        return self.net(
            image, sigma, mapping_cond=augmentation, cross_cond=text, cross_cond_padding=padding
        )


def get_inputs():
    padding = torch.zeros(2, 12)
    padding[1, 8:] = 1
    return [
        torch.randn(2, 3, 32, 32),
        torch.rand(2) * 3 + 0.1,
        torch.randn(2, 9),
        torch.randn(2, 12, 96),
        padding,
    ]


def get_init_inputs():
    return [[2, 2, 2], [64, 128, 256]]
