"""U-Net: two levels down, a bottleneck, two levels up (Ronneberger et al., 2015).

unet (model)
  double_conv (layer)
    2 x conv2d_batch_norm_relu: conv2d, batch_norm, relu
  max_pool2d
  double_conv (layer)
    2 x conv2d_batch_norm_relu: conv2d, batch_norm, relu
  max_pool2d
  double_conv (layer)
    2 x conv2d_batch_norm_relu: conv2d, batch_norm, relu
  conv_transpose2d
  cat
  double_conv (layer)
    2 x conv2d_batch_norm_relu: conv2d, batch_norm, relu
  conv_transpose2d
  cat
  double_conv (layer)
    2 x conv2d_batch_norm_relu: conv2d, batch_norm, relu
  conv2d
"""

import torch
from torch import Tensor, nn


class DoubleConv(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
            nn.Conv2d(outside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)


class Model(nn.Module):
    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        self.encoder1 = DoubleConv(channels, features)
        self.pool1 = nn.MaxPool2d(2)
        self.encoder2 = DoubleConv(features, 2 * features)
        self.pool2 = nn.MaxPool2d(2)
        self.bottleneck = DoubleConv(2 * features, 4 * features)
        self.upconv2 = nn.ConvTranspose2d(4 * features, 2 * features, 2, stride=2)
        self.decoder2 = DoubleConv(4 * features, 2 * features)
        self.upconv1 = nn.ConvTranspose2d(2 * features, features, 2, stride=2)
        self.decoder1 = DoubleConv(2 * features, features)
        self.final_conv = nn.Conv2d(features, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        enc1 = self.encoder1(x)
        enc2 = self.encoder2(self.pool1(enc1))
        bottleneck = self.bottleneck(self.pool2(enc2))
        dec2 = self.decoder2(torch.cat((self.upconv2(bottleneck), enc2), dim=1))
        dec1 = self.decoder1(torch.cat((self.upconv1(dec2), enc1), dim=1))
        return self.final_conv(dec1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(1, 3, 16, 16)]


def get_init_inputs() -> list[int]:
    return [3, 4]
