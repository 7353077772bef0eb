"""VGG-like image classifier: groups of 3x3 convolutions, each group ended by max pooling."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
IMAGE_SIZE = 64
STAGES = [(32, 1), (64, 1), (128, 2), (256, 2)]
"""Channels and number of convolutions of each group."""
NUM_CLASSES = 100


def conv_stage(in_channels: int, out_channels: int, num_convs: int) -> nn.Sequential:
    layers = []
    for _ in range(num_convs):
        layers.append(nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1))
        layers.append(nn.ReLU(inplace=True))
        in_channels = out_channels
    layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, image_size: int, stages: list[tuple[int, int]], num_classes: int):
        super().__init__()
        in_channels = 3
        self.features = nn.Sequential()
        for out_channels, num_convs in stages:
            self.features.append(conv_stage(in_channels, out_channels, num_convs))
            in_channels = out_channels
        final_size = image_size // 2 ** len(stages)
        self.classifier = nn.Sequential(
            nn.Linear(in_channels * final_size * final_size, 512),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(512, num_classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        x = self.features(images)
        x = torch.flatten(x, 1)
        return self.classifier(x)


def get_inputs():
    return [torch.rand(BATCH_SIZE, 3, IMAGE_SIZE, IMAGE_SIZE)]


def get_init_inputs():
    return [IMAGE_SIZE, STAGES, NUM_CLASSES]
