"""Deep echo state network of auto_esn: the states of its reservoirs with a linear readout."""

import torch
from auto_esn.esn.esn import DeepESN
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden, layers):
        super().__init__()
        self.model = DeepESN(features, hidden_size=hidden, num_layers=layers, washout=0)
        self.head = nn.Linear(layers * hidden, 1)

    def forward(self, series):
        self.model.reservoir.esn_cell.reset_hidden()
        states = self.model.reservoir(series)
        return self.head(states), states


def get_inputs():
    return [torch.rand(120, 2)]


def get_init_inputs():
    return [2, 200, 3]
