"""UNETR on a small volume, from self-attention-cv."""

import torch
from self_attention_cv.UnetTr import UNETR
from torch import nn


class Model(nn.Module):
    def __init__(self, size, embed):
        super().__init__()
        self.model = UNETR(
            img_shape=(size, size, size),
            input_dim=2,
            output_dim=3,
            embed_dim=embed,
            patch_size=16,
            num_heads=4,
            ext_layers=[1, 2, 3, 4],
            norm="instance",
            base_filters=8,
            dim_linear_block=256,
        )

    def forward(self, volume):
        return self.model(volume)


def get_inputs():
    return [torch.randn(1, 2, 32, 32, 32)]


def get_init_inputs():
    return [32, 64]
