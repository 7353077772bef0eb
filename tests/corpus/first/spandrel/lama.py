"""spandrel's LaMa: inpainting with convolutions of an image's spectrum."""

import torch
from spandrel.architectures.LaMa import LaMa


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = LaMa(in_nc=4)

    def forward(self, image, mask):
        return self.net(image, mask)


def get_inputs():
    return [torch.rand(1, 3, 64, 64), (torch.rand(1, 1, 64, 64) > 0.8).float()]


def get_init_inputs():
    return []
