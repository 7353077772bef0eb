"""gMLP for images: patches, spatial gating units with tiny attention, stochastic depth."""

import torch
from g_mlp_pytorch import gMLPVision


class Model(torch.nn.Module):
    def __init__(self, size, classes, dim, depth):
        super().__init__()
        self.net = gMLPVision(
            image_size=size,
            patch_size=16,
            num_classes=classes,
            dim=dim,
            depth=depth,
            attn_dim=32,
            prob_survival=0.9,
        )
        for parameter in self.parameters():
            if parameter.abs().max() < 1e-4:  # starts as (almost) zero, and would hide its branch
                torch.nn.init.normal_(parameter, std=0.05)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(2, 3, 128, 128)]


def get_init_inputs():
    return [128, 100, 192, 6]
