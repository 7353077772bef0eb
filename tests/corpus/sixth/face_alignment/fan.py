"""FAN of face-alignment: stacked hourglasses give the heat maps of 68 landmarks, and each map's
highest place."""

import torch
from face_alignment.models import FAN


class Model(torch.nn.Module):
    def __init__(self, stacks):
        super().__init__()
        self.net = FAN(stacks)

    def forward(self, face):
        heat = self.net(face)[-1]
        place = heat.flatten(2).argmax(dim=2)
        return heat, torch.stack([place % heat.shape[3], place // heat.shape[3]], dim=2)


def get_inputs():
    return [torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return [2]
