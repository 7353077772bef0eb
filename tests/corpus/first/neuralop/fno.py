"""neuraloperator's FNO in two dimensions: spectral convolutions with padding, grid coordinates
and MLPs of channels."""

import torch
from neuralop.models import FNO


class Model(torch.nn.Module):
    def __init__(self, modes, hidden):
        super().__init__()
        self.net = FNO(
            (modes, modes), 1, 1, hidden, n_layers=3, norm="group_norm", domain_padding=0.25
        )

    def forward(self, field):
        return self.net(field)


def get_inputs():
    return [torch.randn(2, 1, 32, 32)]


def get_init_inputs():
    return [8, 24]
