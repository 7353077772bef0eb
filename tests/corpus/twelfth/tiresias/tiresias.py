"""Tiresias: array LSTM with several memory cells that predicts security events."""

import torch
from tiresias import Tiresias
from torch import nn


class Model(nn.Module):
    def __init__(self, events, hidden):
        super().__init__()
        self.model = Tiresias(input_size=events, hidden_size=hidden, output_size=events, k=4)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 50, (4, 6))]


def get_init_inputs():
    return [50, 64]
