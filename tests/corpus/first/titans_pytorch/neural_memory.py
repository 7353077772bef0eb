"""titans-pytorch's NeuralMemory: a network whose weights are learned within the forward."""

import torch
from titans_pytorch import NeuralMemory


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.memory = NeuralMemory(width, chunk_size=16, heads=2, dim_head=16)

    def forward(self, sequence):
        return self.memory(sequence)[0]


def get_inputs():
    return [torch.randn(1, 64, 32)]


def get_init_inputs():
    return [32]
