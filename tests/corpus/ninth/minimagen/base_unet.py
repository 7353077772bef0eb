"""Base U-Net of MinImagen, conditioned on the embedding of a text."""

import torch
from minimagen.Unet import Unet
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, mults, text):
        super().__init__()
        self.model = Unet(
            dim=dim,
            dim_mults=mults,
            text_embed_dim=text,
            cond_dim=64,
            num_resnet_blocks=1,
            layer_attns=(False, True),
            layer_cross_attns=(False, True),
            attn_heads=4,
        )

    def forward(self, noisy, times, text, mask):
        return self.model(noisy, times, text_embeds=text, text_mask=mask)


def get_inputs():
    mask = torch.ones(2, 20, dtype=torch.bool)
    mask[1, 12:] = False
    return [torch.randn(2, 3, 32, 32), torch.tensor([10, 400]), torch.randn(2, 20, 512), mask]


def get_init_inputs():
    return [64, (1, 2), 512]
