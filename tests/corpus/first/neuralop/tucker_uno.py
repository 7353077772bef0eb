"""neuraloperator's UNO: a U-shaped Fourier operator with Tucker factors for weights."""

import torch
from neuralop.models import UNO


class Model(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = UNO(
            2,
            1,
            hidden,
            lifting_channels=32,
            projection_channels=32,
            n_layers=4,
            uno_out_channels=[hidden, 2 * hidden, 2 * hidden, hidden],
            uno_n_modes=[[6, 6]] * 4,
            uno_scalings=[[1, 1], [0.5, 0.5], [1, 1], [2, 2]],
            factorization="tucker",
            rank=0.4,
            norm="instance_norm",
            channel_mlp_skip="linear",
        )

    def forward(self, field):
        return self.net(field)


def get_inputs():
    return [torch.randn(2, 2, 32, 32)]


def get_init_inputs():
    return [16]
