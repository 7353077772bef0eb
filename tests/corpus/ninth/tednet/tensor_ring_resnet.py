"""ResNet-20 with weights in the tensor ring format, from tednet."""

import torch
from tednet.tnn.tensor_ring import TRResNet20
from torch import nn


class Model(nn.Module):
    def __init__(self, ranks, classes):
        super().__init__()
        self.model = TRResNet20(ranks, classes)

    def forward(self, images):
        return self.model(images)


def get_inputs():
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs():
    return [[6, 6, 6, 6, 6, 6, 6], 10]
