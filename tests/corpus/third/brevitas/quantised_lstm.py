"""Bidirectional LSTM with 8-bit weights, gates and states from the quantisation library
Brevitas."""

import brevitas.nn as qnn
import torch


class Model(torch.nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.net = qnn.QuantLSTM(
            features, hidden, num_layers=2, bidirectional=True, batch_first=True
        )
        self.head = qnn.QuantLinear(2 * hidden, 40, bias=True, weight_bit_width=8)

    def forward(self, frames):
        hidden, (last, cell) = self.net(frames)
        return self.head(hidden), last, cell


def get_inputs():
    return [torch.randn(4, 30, 40)]


def get_init_inputs():
    return [40, 96]
