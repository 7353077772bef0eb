"""A hypernetwork that generates the weights of a linear layer."""

import hyperlight as hl
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = hl.HyperLinear(16, 8)
        self.hypernet = hl.HyperNet(
            input_shapes={"h": (6,)},
            output_shapes=self.main.external_shapes(),
            hidden_sizes=[32, 64],
        )

    def forward(self, h, x):
        parameters = self.hypernet(h=h)
        with self.main.using_externals(parameters):
            out = self.main(x)
        return out


def get_inputs():
    return [torch.rand(6), torch.randn(10, 16)]


def get_init_inputs():
    return []
