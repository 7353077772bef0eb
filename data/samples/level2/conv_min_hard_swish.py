"""Convolution, limited from above by a constant, then hard swish and global average pooling."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 16
IN_CHANNELS = 3
OUT_CHANNELS = 32
HEIGHT = WIDTH = 64


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, ceiling: float):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride=2, padding=1)
        self.ceiling = ceiling

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        x = torch.minimum(x, torch.tensor(self.ceiling, device=x.device))
        x = F.hardswish(x)
        return F.adaptive_avg_pool2d(x, 1).flatten(1)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, 3, 0.5]
