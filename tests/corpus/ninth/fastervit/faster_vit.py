"""FasterViT with hierarchical attention and carrier tokens, from fastervit."""

import torch
from fastervit.models.faster_vit import FasterViT
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depths, classes):
        super().__init__()
        self.model = FasterViT(
            dim=dim,
            in_dim=64,
            depths=depths,
            num_heads=[2, 4, 8, 16],
            window_size=[7, 7, 7, 7],
            ct_size=2,
            mlp_ratio=4,
            resolution=224,
            num_classes=classes,
            hat=[False, False, True, False],
        )

    def forward(self, images):
        return self.model(images)


def get_inputs():
    return [torch.randn(1, 3, 224, 224)]


def get_init_inputs():
    return [64, [2, 3, 6, 5], 100]
