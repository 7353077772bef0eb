"""Text-line recognizer: depthwise separable convolutions and a bidirectional GRU for CTC."""

import torch
from legere.model import CompactCRNN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = CompactCRNN()

    def forward(self, images):
        return self.model(images)


def get_inputs():
    return [torch.randn(2, 1, 32, 128)]


def get_init_inputs():
    return []
