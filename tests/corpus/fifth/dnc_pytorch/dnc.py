"""A differentiable neural computer: an LSTM that reads and writes a linked memory."""

import torch
from dnc import DNC


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = DNC(
            input_size=width,
            hidden_size=128,
            num_layers=2,
            num_hidden_layers=1,
            nr_cells=32,
            cell_size=24,
            read_heads=4,
            independent_linears=True,
        )

    def forward(self, sequence):
        output, (_, _, read) = self.net(sequence, reset_experience=True)
        return output, read


def get_inputs():
    return [torch.randn(2, 10, 32)]


def get_init_inputs():
    return [32]
