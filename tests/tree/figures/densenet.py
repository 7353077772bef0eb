"""DenseNet: two dense blocks with bottlenecks and a transition (Huang et al., 2017).

densenet (model)
  conv2d_batch_norm_relu_max_pool2d: conv2d, batch_norm, relu, max_pool2d
  dense_block (layer)
    2 x dense_layer: cat, batch_norm, relu, conv2d, batch_norm, relu, conv2d
    cat
  transition: batch_norm, relu, conv2d, avg_pool2d
  dense_block (layer)
    2 x dense_layer: cat, batch_norm, relu, conv2d, batch_norm, relu, conv2d
    cat
  output_head: batch_norm, relu, adaptive_avg_pool2d, linear
"""

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _DenseLayer(nn.Module):
    def __init__(self, inside: int, growth_rate: int) -> None:
        super().__init__()
        self.norm1, self.relu1 = nn.BatchNorm2d(inside), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inside, 4 * growth_rate, 1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(4 * growth_rate), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4 * growth_rate, growth_rate, 3, padding=1, bias=False)

    def bn_function(self, inputs: list[Tensor]) -> Tensor:
        return self.conv1(self.relu1(self.norm1(torch.cat(inputs, 1))))

    def forward(self, inputs: list[Tensor]) -> Tensor:
        return self.conv2(self.relu2(self.norm2(self.bn_function(inputs))))


class _DenseBlock(nn.ModuleDict):
    def __init__(self, inside: int, growth_rate: int) -> None:
        super().__init__()
        self.add_module("denselayer1", _DenseLayer(inside, growth_rate))
        self.add_module("denselayer2", _DenseLayer(inside + growth_rate, growth_rate))

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.norm, self.relu = nn.BatchNorm2d(inside), nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(inside, outside, 1, bias=False)
        self.pool = nn.AvgPool2d(2)


class Model(nn.Module):
    def __init__(self, growth_rate: int, num_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            OrderedDict(
                conv0=nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False),
                norm0=nn.BatchNorm2d(8),
                relu0=nn.ReLU(inplace=True),
                pool0=nn.MaxPool2d(3, stride=2, padding=1),
                denseblock1=_DenseBlock(8, growth_rate),
                transition1=_Transition(8 + 2 * growth_rate, 8),
                denseblock2=_DenseBlock(8, growth_rate),
                norm5=nn.BatchNorm2d(8 + 2 * growth_rate),
            )
        )
        self.classifier = nn.Linear(8 + 2 * growth_rate, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.features(x), inplace=True)
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(out, (1, 1)), 1))


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs() -> list[int]:
    return [4, 5]
