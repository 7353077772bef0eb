"""PINA's PirateNet: gated residual blocks for the solution of a differential equation at points."""

import torch
from pina.model import PirateNet


class Model(torch.nn.Module):
    def __init__(self, inputs, width, outputs):
        super().__init__()
        self.model = PirateNet(
            input_dimension=inputs, inner_size=width, output_dimension=outputs, n_layers=4
        )

    def forward(self, points):
        return self.model(points)


def get_inputs():
    return [torch.rand(1024, 3)]


def get_init_inputs():
    return [3, 128, 2]
