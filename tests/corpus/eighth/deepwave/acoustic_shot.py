"""Waves of one seismic shot through a learnt velocity model, from deepwave."""

import deepwave
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, side, steps):
        super().__init__()
        self.depth = nn.Parameter(1500 + torch.rand(side, side) * 1000)
        self.steps = steps

    def forward(self, amplitudes, sources, receivers):
        out = deepwave.scalar(
            self.depth,
            5.0,
            0.001,
            source_amplitudes=amplitudes,
            source_locations=sources,
            receiver_locations=receivers,
            pml_freq=25.0,
            max_vel=2600.0,
            nt=self.steps,
        )
        return out[-1]


def get_inputs():
    wavelet = deepwave.wavelets.ricker(25.0, 150, 0.001, 0.06)
    line = torch.stack([torch.full((20,), 2), torch.arange(10, 50, 2)], 1)
    return [wavelet.repeat(1, 1, 1), torch.tensor([[[2, 30]]]), line[None]]


def get_init_inputs():
    return [60, 150]
