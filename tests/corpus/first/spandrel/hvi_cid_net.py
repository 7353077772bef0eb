"""spandrel's HVI-CIDNet: a colour space of its own, two branches that attend to each other."""

import torch
from spandrel.architectures.HVICIDNet import HVICIDNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = HVICIDNet(channels=[12, 12, 24, 48], heads=[1, 2, 4, 8])

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 48, 48)]


def get_init_inputs():
    return []
