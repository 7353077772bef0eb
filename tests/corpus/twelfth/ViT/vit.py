"""Plain vision transformer for classification."""

import torch
from torch import nn
from ViT import ViT


class Model(nn.Module):
    def __init__(self, img_size, depth):
        super().__init__()
        self.model = ViT(
            img_size=img_size,
            patch_size=16,
            num_classes=100,
            embed_dim=192,
            depth=depth,
            num_heads=4,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 3, 96, 96)]


def get_init_inputs():
    return [96, 3]
