"""MobileNetV2: inverted residuals, each a Sequential of Sequentials (Sandler et al., 2018).

mobilenet_v2 (model)
  conv_bn_relu: conv2d, batch_norm, relu6
  inverted_residual (layer)
    conv_bn_relu: conv2d, batch_norm, relu6
    conv2d_batch_norm: conv2d, batch_norm
  inverted_residual (layer)
    2 x conv_bn_relu: conv2d, batch_norm, relu6
    conv2d_batch_norm: conv2d, batch_norm
  inverted_residual (layer)
    2 x conv_bn_relu: conv2d, batch_norm, relu6
    conv2d_batch_norm_add: conv2d, batch_norm, add
  conv_bn_relu: conv2d, batch_norm, relu6
  output_head: adaptive_avg_pool2d, linear
"""

import torch
from torch import Tensor, nn


class ConvBNReLU(nn.Sequential):
    def __init__(self, inside: int, outside: int, kernel: int = 3, stride: int = 1, groups=1):
        super().__init__(
            nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int, expand_ratio: int) -> None:
        super().__init__()
        hidden = inside * expand_ratio
        self.use_res_connect = stride == 1 and inside == outside
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(ConvBNReLU(inside, hidden, kernel=1))
        layers += [
            ConvBNReLU(hidden, hidden, stride=stride, groups=hidden),
            nn.Conv2d(hidden, outside, 1, bias=False),
            nn.BatchNorm2d(outside),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class Model(nn.Module):
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            ConvBNReLU(3, 8, stride=2),
            InvertedResidual(8, 4, stride=1, expand_ratio=1),
            InvertedResidual(4, 6, stride=2, expand_ratio=3),
            InvertedResidual(6, 6, stride=1, expand_ratio=3),
            ConvBNReLU(6, 16, kernel=1),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs() -> list[int]:
    return [5]
