"""Kornia's DexiNed: edges from six scales and their fusion."""

import torch
from kornia.models.dexined import DexiNed


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DexiNed(pretrained=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return []
