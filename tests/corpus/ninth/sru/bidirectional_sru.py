"""Bidirectional simple recurrent units with masks for padding, from sru."""

import torch
from sru import SRU
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, width, layers):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.rnn = SRU(
            width, width, num_layers=layers, bidirectional=True, layer_norm=True, highway_bias=-1.0
        )
        self.head = nn.Linear(2 * width, 5)

    def forward(self, ids, padding):
        out, state = self.rnn(self.embed(ids), mask_pad=padding)
        return self.head(out), state


def get_inputs():
    padding = torch.zeros(60, 4, dtype=torch.bool)
    padding[45:, 2:] = True
    return [torch.randint(0, 3000, (60, 4)), padding]


def get_init_inputs():
    return [3000, 128, 3]
