"""DOFA: a hypernetwork makes the patch embedding's weights from each band's wavelength."""

import torch
from torchgeo.models import DOFA


class Model(torch.nn.Module):
    def __init__(self, wavelengths, dim, depth):
        super().__init__()
        self.wavelengths = wavelengths
        self.net = DOFA(
            img_size=64, patch_size=16, embed_dim=dim, depth=depth, num_heads=4, num_classes=10
        )

    def forward(self, image):
        return self.net(image, self.wavelengths)


def get_inputs():
    return [torch.randn(1, 4, 64, 64)]


def get_init_inputs():
    return [[0.49, 0.56, 0.665, 0.842], 128, 3]
