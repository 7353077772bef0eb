"""U-Net-like segmentation: down to coarse features and up again, with skips at each resolution."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 2
IN_CHANNELS = 3
NUM_CLASSES = 5
WIDTH = 24
HEIGHT, IMAGE_WIDTH = 64, 96


class DoubleConv(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
            nn.GroupNorm(8, out_channels),
            nn.SiLU(),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.GroupNorm(8, out_channels),
            nn.SiLU(),
        )


class Up(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.upsample = nn.ConvTranspose2d(in_channels, out_channels, kernel_size=2, stride=2)
        self.conv = DoubleConv(2 * out_channels, out_channels)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        return self.conv(torch.cat([skip, self.upsample(x)], dim=1))


class Model(nn.Module):
    def __init__(self, in_channels: int, num_classes: int, width: int):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.encoder1 = DoubleConv(in_channels, width)
        self.encoder2 = DoubleConv(width, 2 * width)
        self.bottleneck = DoubleConv(2 * width, 4 * width)
        self.up2 = Up(4 * width, 2 * width)
        self.up1 = Up(2 * width, width)
        self.head = nn.Conv2d(width, num_classes, kernel_size=1)

    def forward(self, images: Tensor) -> Tensor:
        fine = self.encoder1(images)
        middle = self.encoder2(self.pool(fine))
        coarse = self.bottleneck(self.pool(middle))
        x = self.up2(coarse, middle)
        x = self.up1(x, fine)
        return torch.softmax(self.head(x), dim=1)


def get_inputs():
    return [torch.rand(BATCH_SIZE, IN_CHANNELS, HEIGHT, IMAGE_WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, NUM_CLASSES, WIDTH]
