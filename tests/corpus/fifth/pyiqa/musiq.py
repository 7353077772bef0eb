"""MUSIQ: an image's quality from patches of three scales, hashed positions, a transformer."""

import torch
from pyiqa.archs.musiq_arch import MUSIQ


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.net = MUSIQ(
            hidden_size=192, mlp_dim=576, num_layers=layers, num_class=10, pretrained=False
        )

    def forward(self, image):
        return self.net(image, return_mos=True, return_dist=True)


def get_inputs():
    return [torch.rand(1, 3, 180, 240)]


def get_init_inputs():
    return [6]
