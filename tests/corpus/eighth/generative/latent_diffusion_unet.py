"""Denoising U-Net with cross-attention for volumes from monai-generative."""

import torch
from generative.networks.nets import DiffusionModelUNet
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, context):
        super().__init__()
        self.model = DiffusionModelUNet(
            spatial_dims=3,
            in_channels=channels,
            out_channels=channels,
            num_res_blocks=1,
            num_channels=(32, 64, 96),
            attention_levels=(False, True, True),
            num_head_channels=(0, 32, 32),
            with_conditioning=True,
            cross_attention_dim=context,
        )

    def forward(self, latent, time, context):
        return self.model(latent, timesteps=time, context=context)


def get_inputs():
    return [torch.randn(1, 3, 16, 16, 16), torch.tensor([401]), torch.randn(1, 4, 48)]


def get_init_inputs():
    return [3, 48]
