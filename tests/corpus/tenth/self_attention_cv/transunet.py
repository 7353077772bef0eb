"""TransUNet, a U-Net with a ViT at the bottleneck, from self-attention-cv."""

import torch
from self_attention_cv.transunet import TransUnet
from torch import nn


class Model(nn.Module):
    def __init__(self, size, blocks):
        super().__init__()
        self.model = TransUnet(
            in_channels=3,
            img_dim=size,
            vit_blocks=blocks,
            vit_heads=4,
            vit_dim_linear_mhsa_block=256,
            classes=5,
            vit_channels=128,
        )

    def forward(self, images):
        return self.model(images)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return [64, 2]
