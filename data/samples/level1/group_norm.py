"""Group normalisation of feature maps, each sample's channels normalised in eight groups."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 16
NUM_GROUPS = 8
CHANNELS = 64
HEIGHT = WIDTH = 48


class Model(nn.Module):
    def __init__(self, num_groups: int, num_channels: int):
        super().__init__()
        self.norm = nn.GroupNorm(num_groups, num_channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [NUM_GROUPS, CHANNELS]
