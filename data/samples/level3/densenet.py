"""DenseNet-like classifier in which each layer reads the outputs of all the layers before it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 4
IMAGE_SIZE = 64
GROWTH_RATE = 16
BLOCK_SIZES = [3, 4]
NUM_CLASSES = 100


class DenseLayer(nn.Module):
    def __init__(self, in_channels: int, growth_rate: int):
        super().__init__()
        self.norm = nn.BatchNorm2d(in_channels)
        self.conv = nn.Conv2d(in_channels, growth_rate, kernel_size=3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.relu(self.norm(x)))


class DenseBlock(nn.Module):
    def __init__(self, in_channels: int, num_layers: int, growth_rate: int):
        super().__init__()
        self.layers = nn.ModuleList(
            DenseLayer(in_channels + i * growth_rate, growth_rate) for i in range(num_layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, dim=1)))
        return torch.cat(features, dim=1)


class Transition(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.norm = nn.BatchNorm2d(in_channels)
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.conv(F.relu(self.norm(x))))


class Model(nn.Module):
    def __init__(self, growth_rate: int, block_sizes: list[int], num_classes: int):
        super().__init__()
        channels = 2 * growth_rate
        self.stem = nn.Conv2d(3, channels, kernel_size=7, stride=2, padding=3, bias=False)
        self.blocks = nn.Sequential()
        for num_layers in block_sizes:
            self.blocks.append(DenseBlock(channels, num_layers, growth_rate))
            channels += num_layers * growth_rate
            self.blocks.append(Transition(channels, channels // 2))
            channels //= 2
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.blocks(self.stem(images))
        x = F.relu(self.norm(x), inplace=True)
        x = F.adaptive_avg_pool2d(x, (1, 1)).view(x.size(0), -1)
        return self.classifier(x)


def get_inputs():
    return [torch.rand(BATCH_SIZE, 3, IMAGE_SIZE, IMAGE_SIZE)]


def get_init_inputs():
    return [GROWTH_RATE, BLOCK_SIZES, NUM_CLASSES]
