"""Image network with wide kernels, convolved in the frequency domain by fft-conv-pytorch."""

import torch
from fft_conv_pytorch import FFTConv1d, FFTConv2d
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = FFTConv2d(3, width, 21, padding=10, padding_mode="reflect")
        self.body = FFTConv2d(width, width, 15, padding=7, groups=width, stride=2)
        self.mix = FFTConv2d(width, width, 5, padding=4, dilation=2)
        self.line = FFTConv1d(width, 8, 33, padding=16)

    def forward(self, image):
        x = torch.relu(self.stem(image))
        x = torch.relu(self.body(x))
        x = torch.relu(self.mix(x))
        return self.line(x.mean(2))


def get_inputs():
    return [torch.randn(2, 3, 96, 96)]


def get_init_inputs():
    return [32]
