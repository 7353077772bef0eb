"""Transposed convolution of a volume, layer norm over channels, Mish, and a mean over depth."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 2
IN_CHANNELS = 24
OUT_CHANNELS = 32
DEPTH, HEIGHT, WIDTH = 6, 16, 16


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.upsample = nn.ConvTranspose3d(in_channels, out_channels, kernel_size=2, stride=2)
        self.norm = nn.LayerNorm(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        x = self.upsample(x)
        x = self.norm(x.permute(0, 2, 3, 4, 1)).permute(0, 4, 1, 2, 3)
        x = x * torch.tanh(F.softplus(x))
        return x.mean(dim=2)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_CHANNELS, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS]
