"""ncps' CfC: closed-form continuous-time cells wired as a neural circuit, over a sequence."""

import torch
from ncps.torch import CfC
from ncps.wirings import AutoNCP


class Model(torch.nn.Module):
    def __init__(self, features, units, outputs):
        super().__init__()
        self.net = CfC(features, AutoNCP(units, outputs), mixed_memory=True)

    def forward(self, sequence):
        return self.net(sequence)


def get_inputs():
    return [torch.randn(4, 12, 8)]


def get_init_inputs():
    return [8, 24, 3]
