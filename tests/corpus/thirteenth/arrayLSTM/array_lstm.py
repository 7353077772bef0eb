"""Array-LSTM: a recurrent network with k memory cells per hidden unit."""

import torch
from arrayLSTM import ArrayLSTM
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden, cells, classes):
        super().__init__()
        self.model = ArrayLSTM(features, hidden, cells)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        outputs, (hidden, state) = self.model(x)
        return self.head(outputs), hidden, state


def get_inputs():
    return [torch.randn(8, 12, 64)]


def get_init_inputs():
    return [64, 128, 4, 30]
