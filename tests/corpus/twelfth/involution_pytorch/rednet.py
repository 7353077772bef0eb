"""Residual classifier whose spatial mixing is involution."""

import torch
from involution_pytorch import Inv2d
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.reduce = nn.Sequential(nn.Conv2d(channels, width, 1), nn.BatchNorm2d(width), nn.ReLU())
        self.involution = nn.Sequential(Inv2d(width, 7, 1), nn.BatchNorm2d(width), nn.ReLU())
        self.expand = nn.Sequential(nn.Conv2d(width, channels, 1), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.expand(self.involution(self.reduce(x))))


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU()
        )
        self.blocks = nn.Sequential(Bottleneck(64, 32), Bottleneck(64, 32))
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))


def get_inputs():
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs():
    return [10]
