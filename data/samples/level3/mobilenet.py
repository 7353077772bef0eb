"""MobileNet-like classifier of inverted residuals: expand, filter depthwise, squeeze, project."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
IMAGE_SIZE = 96
EXPANSION = 4
STAGES = [(16, 1), (24, 2), (24, 1), (40, 2), (40, 1)]
"""Channels and stride of each block."""
NUM_CLASSES = 100


def conv_bn(
    in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    padding = kernel_size // 2
    conv = nn.Conv2d(
        in_channels, out_channels, kernel_size, stride, padding, groups=groups, bias=False
    )
    return [conv, nn.BatchNorm2d(out_channels)]


class SqueezeExcite(nn.Module):
    """Weights each channel by what the whole image says about it."""

    def __init__(self, channels: int, squeezed_channels: int):
        super().__init__()
        self.reduce = nn.Conv2d(channels, squeezed_channels, kernel_size=1)
        self.expand = nn.Conv2d(squeezed_channels, channels, kernel_size=1)
        self.relu = nn.ReLU()
        self.gate = nn.Hardsigmoid()

    def forward(self, x: Tensor) -> Tensor:
        scale = x.mean(dim=(2, 3), keepdim=True)
        scale = self.gate(self.expand(self.relu(self.reduce(scale))))
        return x * scale


class InvertedResidual(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int):
        super().__init__()
        hidden = in_channels * expansion
        self.use_residual = stride == 1 and in_channels == out_channels
        self.layers = nn.Sequential(
            *conv_bn(in_channels, hidden, 1),
            nn.Hardswish(),
            *conv_bn(hidden, hidden, 3, stride, groups=hidden),
            nn.Hardswish(),
            SqueezeExcite(hidden, hidden // 4),
            *conv_bn(hidden, out_channels, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.use_residual:
            return x + self.layers(x)
        return self.layers(x)


class Model(nn.Module):
    def __init__(self, stages: list[tuple[int, int]], expansion: int, num_classes: int):
        super().__init__()
        channels = 16
        self.stem = nn.Sequential(*conv_bn(3, channels, 3, stride=2), nn.Hardswish())
        blocks = []
        for out_channels, stride in stages:
            blocks.append(InvertedResidual(channels, out_channels, stride, expansion))
            channels = out_channels
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Sequential(*conv_bn(channels, 4 * channels, 1), nn.Hardswish())
        self.classifier = nn.Linear(4 * channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.head(self.blocks(self.stem(images)))
        return self.classifier(x.mean(dim=(2, 3)))


def get_inputs():
    return [torch.rand(BATCH_SIZE, 3, IMAGE_SIZE, IMAGE_SIZE)]


def get_init_inputs():
    return [STAGES, EXPANSION, NUM_CLASSES]
