"""transformers' Swin2SR: cosine attention in shifted windows, twice the pixels."""

import torch
from transformers import Swin2SRConfig, Swin2SRForImageSuperResolution


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Swin2SRForImageSuperResolution(
            Swin2SRConfig(
                image_size=32,
                embed_dim=32,
                depths=[2, 2],
                num_heads=[4, 4],
                window_size=8,
                upscale=2,
            )
        )

    def forward(self, image):
        return self.net(pixel_values=image).reconstruction


def get_inputs():
    return [torch.rand(1, 3, 32, 32)]


def get_init_inputs():
    return []
