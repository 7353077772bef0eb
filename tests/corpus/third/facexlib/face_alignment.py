"""Landmarks of faces: stacked hourglasses with coordinate convolutions that also see the boundary
heatmap of the stage before."""

import torch
from facexlib.alignment.awing_arch import FAN


class Model(torch.nn.Module):
    def __init__(self, modules):
        super().__init__()
        self.net = FAN(num_modules=modules, num_landmarks=98, device="cpu")

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 256, 256)]


def get_init_inputs():
    return [2]
