"""Inception module: four branches with different views of the same image, side by side."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 8
IN_CHANNELS = 192
HEIGHT = WIDTH = 28


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_1x1: int,
        reduce_3x3: int,
        out_3x3: int,
        reduce_5x5: int,
        out_5x5: int,
        out_pool: int,
    ):
        super().__init__()
        self.branch1 = nn.Conv2d(in_channels, out_1x1, kernel_size=1)
        self.branch2_reduce = nn.Conv2d(in_channels, reduce_3x3, kernel_size=1)
        self.branch2 = nn.Conv2d(reduce_3x3, out_3x3, kernel_size=3, padding=1)
        self.branch3_reduce = nn.Conv2d(in_channels, reduce_5x5, kernel_size=1)
        self.branch3 = nn.Conv2d(reduce_5x5, out_5x5, kernel_size=5, padding=2)
        self.branch4 = nn.Conv2d(in_channels, out_pool, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        branch1 = F.relu(self.branch1(x))
        branch2 = F.relu(self.branch2(F.relu(self.branch2_reduce(x))))
        branch3 = F.relu(self.branch3(F.relu(self.branch3_reduce(x))))
        pooled = F.max_pool2d(x, kernel_size=3, stride=1, padding=1)
        branch4 = F.relu(self.branch4(pooled))
        return torch.cat([branch1, branch2, branch3, branch4], dim=1)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, 64, 96, 128, 16, 32, 32]
