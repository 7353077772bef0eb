"""Multilayer perceptron: a stack of linear layers that narrows from features to classes."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 128
INPUT_SIZE = 784
HIDDEN_SIZES = [1024, 512, 512, 256]
OUTPUT_SIZE = 10


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_sizes: list[int], output_size: int):
        super().__init__()
        layers = []
        for hidden_size in hidden_sizes:
            layers += [nn.Linear(input_size, hidden_size), nn.ReLU()]
            input_size = hidden_size
        layers.append(nn.Linear(input_size, output_size))
        self.network = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, INPUT_SIZE)]


def get_init_inputs():
    return [INPUT_SIZE, HIDDEN_SIZES, OUTPUT_SIZE]
