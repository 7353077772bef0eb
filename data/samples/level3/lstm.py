"""Two-layer LSTM that predicts from the last step of a sequence and hands back its state."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 8
SEQ_LEN = 64
INPUT_SIZE = 128
HIDDEN_SIZE = 256
NUM_LAYERS = 2
OUTPUT_SIZE = 10


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, num_layers: int, output_size: int):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, dropout=0.1)
        self.fc = nn.Linear(hidden_size, output_size)

    def forward(self, x: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        out, state = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1]), state


def get_inputs():
    return [
        torch.randn(BATCH_SIZE, SEQ_LEN, INPUT_SIZE),
        torch.randn(NUM_LAYERS, BATCH_SIZE, HIDDEN_SIZE),
        torch.randn(NUM_LAYERS, BATCH_SIZE, HIDDEN_SIZE),
    ]


def get_init_inputs():
    return [INPUT_SIZE, HIDDEN_SIZE, NUM_LAYERS, OUTPUT_SIZE]
