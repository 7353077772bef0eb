"""GigaGAN without text: style network, adaptive convolution kernels chosen per image, L2 distance
attention, skip layer excitation; images of all resolutions."""

import torch
from gigagan_pytorch import Generator


class Model(torch.nn.Module):
    def __init__(self, size, capacity, latent):
        super().__init__()
        self.net = Generator(
            image_size=size,
            dim_capacity=capacity,
            dim_max=256,
            style_network={"dim": latent, "depth": 4},
            unconditional=True,
            num_conv_kernels=2,
            self_attn_resolutions=(32, 16),
            self_attn_dim_head=32,
            self_attn_heads=4,
        )
        for parameter in self.parameters():
            if parameter.abs().max() < 1e-4:  # starts as (almost) zero, and would hide its branch
                torch.nn.init.normal_(parameter, std=0.05)

    def forward(self, latent):
        styles = self.net.style_network(latent)
        return self.net(styles=styles, return_all_rgbs=True)


def get_inputs():
    return [torch.randn(2, 64)]


def get_init_inputs():
    return [64, 8, 64]
