"""Network built from factories: layers, an LSTM and a readout over a sequence."""

import rnnbuilder
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.model = rnnbuilder.Sequential(
            rnnbuilder.nn.Linear(hidden),
            rnnbuilder.nn.Tanh(),
            rnnbuilder.rnn.LSTM(hidden, num_layers=2),
            rnnbuilder.nn.Linear(10),
        ).make_model((size,))

    def forward(self, x):
        return self.model(x)[0]


def get_inputs():
    return [torch.randn(7, 3, 16)]


def get_init_inputs():
    return [16, 32]
