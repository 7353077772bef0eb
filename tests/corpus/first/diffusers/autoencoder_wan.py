"""diffusers' Wan autoencoder of video: causal convolutions with a cache, frame by frame."""

import torch
from diffusers import AutoencoderKLWan


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = AutoencoderKLWan(
            base_dim=16,
            z_dim=4,
            dim_mult=[1, 2, 2],
            num_res_blocks=1,
            temperal_downsample=[False, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        )

    def forward(self, video):
        return self.net(video).sample


def get_inputs():
    return [torch.randn(1, 3, 5, 32, 32)]


def get_init_inputs():
    return []
