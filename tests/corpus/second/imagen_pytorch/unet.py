"""Imagen's base UNet: cross-embedding stem, text by perceiver resampler, global context, skip
connections."""

import torch
from imagen_pytorch import Unet


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = Unet(
            dim=dim,
            cond_dim=64,
            text_embed_dim=48,
            dim_mults=(1, 2, 4),
            num_resnet_blocks=2,
            attn_heads=4,
            attn_dim_head=16,
            attn_pool_num_latents=8,
            layer_attns=(False, True, True),
            layer_cross_attns=(False, True, True),
            max_text_len=16,
        )

    def forward(self, image, time, text, mask):
        return self.net(image, time, text_embeds=text, text_mask=mask)


def get_inputs():
    return [
        torch.randn(1, 3, 32, 32),
        torch.rand(1),
        torch.randn(1, 12, 48),
        torch.ones(1, 12).bool(),
    ]


def get_init_inputs():
    return [24]
