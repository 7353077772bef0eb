"""DeepLog: LSTM that predicts the next log event."""

import torch
from deeplog import DeepLog
from torch import nn


class Model(nn.Module):
    def __init__(self, events, hidden):
        super().__init__()
        self.model = DeepLog(input_size=events, hidden_size=hidden, output_size=events)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 50, (8, 10))]


def get_init_inputs():
    return [50, 64]
