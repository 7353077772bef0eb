"""Denoising step of MedSegDiff: a U-Net with conditioning in the frequency domain."""

import torch
from med_seg_diff_pytorch import MedSegDiff, Unet
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, side):
        super().__init__()
        net = Unet(
            dim=dim,
            image_size=side,
            mask_channels=1,
            input_img_channels=3,
            dim_mults=(1, 2, 4),
            full_self_attn=(False, False, True),
        )
        self.diffusion = MedSegDiff(net, timesteps=1000)

    def forward(self, noisy, times, image):
        return self.diffusion.model(noisy, times, image)


def get_inputs():
    return [torch.randn(1, 1, 64, 64), torch.tensor([300.0]), torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [32, 64]
