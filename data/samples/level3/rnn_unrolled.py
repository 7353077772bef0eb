"""Recurrent network unrolled by hand, which writes each step's output into one tensor."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 32
SEQ_LEN = 12
INPUT_SIZE = 128
HIDDEN_SIZE = 256
OUTPUT_SIZE = 64


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, output_size: int):
        super().__init__()
        self.hidden_size = hidden_size
        self.output_size = output_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, x: Tensor) -> Tensor:
        batch_size, seq_len, _ = x.shape
        hidden = x.new_zeros(batch_size, self.hidden_size)
        out = x.new_empty(batch_size, seq_len, self.output_size)
        for t in range(seq_len):
            combined = torch.cat((x[:, t], hidden), dim=1)
            hidden = torch.tanh(self.i2h(combined))
            out[:, t] = self.h2o(hidden)
        return out


def get_inputs():
    return [torch.randn(BATCH_SIZE, SEQ_LEN, INPUT_SIZE)]


def get_init_inputs():
    return [INPUT_SIZE, HIDDEN_SIZE, OUTPUT_SIZE]
