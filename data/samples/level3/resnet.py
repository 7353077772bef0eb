"""ResNet-like image classifier of basic blocks, its shortcuts projected where the shape changes."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
IMAGE_SIZE = 112
WIDTHS = [32, 64, 128]
BLOCKS_PER_STAGE = 2
NUM_CLASSES = 200


class BasicBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return self.relu(out)


class Model(nn.Module):
    def __init__(self, widths: list[int], blocks_per_stage: int, num_classes: int):
        super().__init__()
        in_channels = widths[0]
        self.stem = nn.Sequential(
            nn.Conv2d(3, in_channels, kernel_size=7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(in_channels),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
        blocks = []
        for stage, width in enumerate(widths):
            for index in range(blocks_per_stage):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(BasicBlock(in_channels, width, stride))
                in_channels = width
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(in_channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        x = self.blocks(x)
        x = self.pool(x).flatten(1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(BATCH_SIZE, 3, IMAGE_SIZE, IMAGE_SIZE)]


def get_init_inputs():
    return [WIDTHS, BLOCKS_PER_STAGE, NUM_CLASSES]
