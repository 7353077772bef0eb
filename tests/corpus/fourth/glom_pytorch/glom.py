"""GLOM: columns of levels over image patches; bottom-up and top-down networks and consensus
attention, iterated; all the states of all steps."""

import torch
from glom_pytorch import Glom


class Model(torch.nn.Module):
    def __init__(self, dim, levels, size):
        super().__init__()
        self.net = Glom(dim=dim, levels=levels, image_size=size, patch_size=8)

    def forward(self, image):
        return self.net(image, iters=6, return_all=True)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return [128, 4, 64]
