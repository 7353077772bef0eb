"""MaxViT, the visual backbone of the robotic transformer RT-1."""

import torch
from robotic_transformer_pytorch import MaxViT
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.model = MaxViT(
            num_classes=200,
            dim_conv_stem=32,
            dim=dim,
            dim_head=32,
            depth=(1, 1, 2, 1),
            window_size=4,
            mbconv_expansion_rate=4,
            mbconv_shrinkage_rate=0.25,
            dropout=0.1,
        )

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return [64]
