"""Diffusion with azula: a modulated U-Net inside Karras' preconditioning, and four DDIM steps."""

import torch
from azula.denoise import KarrasDenoiser
from azula.nn.layers import SineEncoding
from azula.nn.unet import UNet
from azula.noise import VPSchedule
from azula.sample import DDIMSampler


class Backbone(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.time = torch.nn.Sequential(
            SineEncoding(64), torch.nn.Linear(64, 128), torch.nn.SiLU(), torch.nn.Linear(128, 128)
        )
        self.unet = UNet(
            channels,
            channels,
            hid_channels=(32, 64, 96),
            hid_blocks=(2, 2, 2),
            mod_features=128,
            norm="group",
        )

    def forward(self, x_t, t, **kwargs):
        return self.unet(x_t, self.time(t))


class Model(torch.nn.Module):
    def __init__(self, channels, steps):
        super().__init__()
        denoiser = KarrasDenoiser(Backbone(channels), VPSchedule())
        self.sampler = DDIMSampler(denoiser, steps=steps, silent=True)

    def forward(self, noise):
        return self.sampler(noise)


def get_inputs():
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs():
    return [3, 4]
