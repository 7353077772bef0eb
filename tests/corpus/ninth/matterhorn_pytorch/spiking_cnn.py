"""Spiking convolutional network of leaky neurons, run for some steps, from matterhorn_pytorch."""

import matterhorn_pytorch.snn as snn
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.model = snn.Sequential(
            snn.DirectEncoder(),
            snn.Conv2d(2, 16, 3, padding=1),
            snn.BatchNorm2d(16),
            snn.LIF(u_threshold=0.3, tau_m=2.0),
            snn.MaxPool2d(2),
            snn.Conv2d(16, 32, 3, padding=1),
            snn.BatchNorm2d(32),
            snn.LIF(u_threshold=0.3, tau_m=2.0),
            snn.MaxPool2d(2),
            snn.Flatten(),
            snn.Linear(32 * 8 * 8, classes),
            snn.AvgSpikeDecoder(),
            return_states=False,
        )

    def forward(self, events):
        return self.model(events)


def get_inputs():
    return [(torch.rand(4, 10, 2, 32, 32) < 0.3).float()]


def get_init_inputs():
    return [10]
