"""Modern U-Net of PDEArena with a condition, from kappamodules."""

import torch
from kappamodules.unet.unet_pdearena import UnetPdearena
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, condition):
        super().__init__()
        self.model = UnetPdearena(
            input_dim=4,
            output_dim=4,
            hidden_channels=channels,
            cond_dim=condition,
            norm=True,
            ch_mults=(1, 2, 2),
            is_attn=(False, False, True),
            mid_attn=True,
            n_blocks=1,
            use_scale_shift_norm=True,
        )

    def forward(self, field, embedding):
        return self.model(field, embedding)


def get_inputs():
    return [torch.randn(1, 4, 32, 32), torch.randn(1, 64)]


def get_init_inputs():
    return [32, 64]
