"""A2N: attention in attention, where each block weighs its attended and its plain branch by what it
sees; four times the size."""

import torch
from super_image import A2nConfig, A2nModel


class Model(torch.nn.Module):
    def __init__(self, scale, width, blocks):
        super().__init__()
        self.net = A2nModel(A2nConfig(scale=scale, nf=width, unf=24, nb=blocks))

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 32, 48)]


def get_init_inputs():
    return [4, 40, 8]
