"""LSTM over each EEG channel and a spatial convolution."""

import torch
from eeg_networks import EEGSpatialLSTM
from torch import nn


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.model = EEGSpatialLSTM(
            classes, input_size=16, hidden_size=16, num_channels=4, dependent=True
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 1, 64, 4)]


def get_init_inputs():
    return [2]
