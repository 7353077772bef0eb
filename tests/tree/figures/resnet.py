"""ResNet: basic blocks in two stages, the second with a projected shortcut (He et al., 2016).

resnet (model)
  conv2d_batch_norm_relu_max_pool2d: conv2d, batch_norm, relu, max_pool2d
  2 x basic_block (layer)
    conv2d_batch_norm_relu: conv2d, batch_norm, relu
    conv2d_batch_norm_add_relu: conv2d, batch_norm, add, relu
  basic_block (layer)
    conv2d_batch_norm_relu: conv2d, batch_norm, relu
    downsample: conv2d, batch_norm
    conv2d_batch_norm_add_relu: conv2d, batch_norm, add, relu
  basic_block (layer)
    conv2d_batch_norm_relu: conv2d, batch_norm, relu
    conv2d_batch_norm_add_relu: conv2d, batch_norm, add, relu
  output_head: adaptive_avg_pool2d, linear
"""

import torch
from torch import Tensor, nn


class BasicBlock(nn.Module):
    def __init__(self, inplanes: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1:
            projection = nn.Conv2d(inplanes, planes, 1, stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(planes))

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Model(nn.Module):
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(BasicBlock(4, 4, 1), BasicBlock(4, 4, 1))
        self.layer2 = nn.Sequential(BasicBlock(4, 8, 2), BasicBlock(8, 8, 1))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs() -> list[int]:
    return [5]
