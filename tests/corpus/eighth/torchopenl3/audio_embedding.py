"""OpenL3's audio embedding from torchopenl3."""

import torch
from torch import nn
from torchopenl3.models import PytorchOpenl3


class Model(nn.Module):
    def __init__(self, content, representation, size):
        super().__init__()
        self.model = PytorchOpenl3(content, representation, size)

    def forward(self, sound):
        return self.model(sound)


def get_inputs():
    return [torch.randn(1, 1, 48000)]


def get_init_inputs():
    return ["music", "mel128", 512]
