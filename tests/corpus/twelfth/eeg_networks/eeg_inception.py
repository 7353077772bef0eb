"""EEG-Inception for event-related potentials."""

import torch
from eeg_networks import EEGInception
from torch import nn


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.model = EEGInception(classes, fs=128, num_channels=8)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 1, 128, 8)]


def get_init_inputs():
    return [2]
