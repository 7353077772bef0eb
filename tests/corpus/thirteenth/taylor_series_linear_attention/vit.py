"""A vision transformer with Taylor series linear attention."""

import torch
from taylor_series_linear_attention.vit import ViT
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = ViT(
            image_size=96, patch_size=8, num_classes=100, dim=dim, depth=depth, heads=8, dim_head=8
        )

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return [128, 4]
