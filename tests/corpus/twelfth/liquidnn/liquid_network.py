"""Liquid neural network of two layers, unrolled over the sequence."""

import torch
from liquidnn import LiquidNeuralNetwork
from torch import nn


class Model(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.model = LiquidNeuralNetwork(input_size, hidden_size, num_layers=2)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 8, 16)]


def get_init_inputs():
    return [16, 32]
