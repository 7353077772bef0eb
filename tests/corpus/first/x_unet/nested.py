"""x-unet's UNet with smaller UNets in its blocks and attention at the bottom."""

import torch
from x_unet import XUnet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = XUnet(
            dim=16,
            dim_mults=(1, 2, 4),
            num_blocks_per_stage=(2, 2, 2),
            num_self_attn_per_stage=(0, 0, 1),
            nested_unet_depths=(3, 2, 1),
            nested_unet_dim=8,
            consolidate_upsample_fmaps=True,
            weight_standardize=True,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
