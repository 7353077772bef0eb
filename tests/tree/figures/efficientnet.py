"""EfficientNet: mobile inverted bottlenecks with squeeze and excitation (Tan and Le, 2019).

efficientnet (model)
  conv2d_norm_activation: conv2d, batch_norm, silu
  mbconv (layer)
    conv2d_norm_activation: conv2d, batch_norm, silu
    squeeze_excitation: adaptive_avg_pool2d, conv2d, silu, conv2d, sigmoid, mul
    conv2d_norm_activation: conv2d, batch_norm
  mbconv (layer)
    2 x conv2d_norm_activation: conv2d, batch_norm, silu
    squeeze_excitation: adaptive_avg_pool2d, conv2d, silu, conv2d, sigmoid, mul
    conv2d_norm_activation: conv2d, batch_norm
  mbconv (layer)
    2 x conv2d_norm_activation: conv2d, batch_norm, silu
    squeeze_excitation: adaptive_avg_pool2d, conv2d, silu, conv2d, sigmoid, mul
    conv2d_norm_activation: conv2d, batch_norm
    add
  conv2d_norm_activation: conv2d, batch_norm, silu
  output_head: adaptive_avg_pool2d, linear
"""

import torch
from torch import Tensor, nn


class Conv2dNormActivation(nn.Sequential):
    def __init__(
        self, inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1, act=nn.SiLU
    ) -> None:
        super().__init__(
            nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outside),
            *([act(inplace=True)] if act else []),
        )


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, squeeze: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeeze, 1), nn.Conv2d(squeeze, channels, 1)
        self.activation, self.scale_activation = nn.SiLU(), nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        scale = self.fc2(self.activation(self.fc1(self.avgpool(x))))
        return self.scale_activation(scale) * x


class MBConv(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int, expand_ratio: int) -> None:
        super().__init__()
        hidden = inside * expand_ratio
        self.use_res_connect = stride == 1 and inside == outside
        expand = [Conv2dNormActivation(inside, hidden, 1)] if expand_ratio != 1 else []
        self.block = nn.Sequential(
            *expand,
            Conv2dNormActivation(hidden, hidden, 3, stride, groups=hidden),
            SqueezeExcitation(hidden, 2),
            Conv2dNormActivation(hidden, outside, 1, act=None),
        )

    def forward(self, x: Tensor) -> Tensor:
        result = self.block(x)
        if self.use_res_connect:
            result += x
        return result


class Model(nn.Module):
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            Conv2dNormActivation(3, 8, 3, stride=2),
            nn.Sequential(MBConv(8, 4, 1, expand_ratio=1)),
            nn.Sequential(MBConv(4, 6, 2, expand_ratio=3), MBConv(6, 6, 1, expand_ratio=3)),
            Conv2dNormActivation(6, 16, 1),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2, inplace=True), nn.Linear(16, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs() -> list[int]:
    return [5]
