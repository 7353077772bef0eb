"""A spiking network of Sinabs on frames of an event camera: convolutions between integrate-and-fire
and leaky neurons; spikes of ten classes at each step."""

import sinabs.layers
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, steps, classes):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(0, 1),
            nn.Conv2d(2, 16, 3, stride=2, padding=1, bias=False),
            nn.Unflatten(0, (-1, steps)),
            sinabs.layers.IAF(),
            nn.Flatten(0, 1),
            nn.AvgPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Unflatten(0, (-1, steps)),
            sinabs.layers.LIF(tau_mem=20.0),
            nn.Linear(32 * 4 * 4, classes, bias=False),
            sinabs.layers.ExpLeak(tau_mem=10.0),
        )

    def forward(self, events):
        sinabs.reset_states(self.net)
        return self.net(events)


def get_inputs():
    return [(torch.rand(2, 20, 2, 32, 32) < 0.2).float()]


def get_init_inputs():
    return [20, 10]
