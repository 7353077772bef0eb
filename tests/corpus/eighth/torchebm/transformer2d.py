"""Conditional transformer for images of torchebm."""

import torch
from torch import nn
from torchebm.models import ConditionalTransformer2D


class Model(nn.Module):
    def __init__(self, size, dim, depth):
        super().__init__()
        self.model = ConditionalTransformer2D(
            in_channels=3,
            out_channels=3,
            input_size=size,
            patch_size=4,
            embed_dim=dim,
            depth=depth,
            num_heads=6,
            cond_dim=dim,
        )

    def forward(self, image, condition):
        return self.model(image, condition)


def get_inputs():
    return [torch.randn(2, 3, 32, 32), torch.randn(2, 192)]


def get_init_inputs():
    return [32, 192, 4]
