"""Batch normalisation of images by the running statistics that training has left behind."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 16
CHANNELS = 64
HEIGHT = WIDTH = 56


class Model(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features)
        with torch.no_grad():
            self.bn.running_mean.uniform_(-0.5, 0.5)
            self.bn.running_var.uniform_(0.5, 1.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS]
