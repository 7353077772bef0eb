"""Normalizer-free ResNet-18 with scaled weight standardization."""

import collections
import collections.abc

import torch
from torch import nn

collections.Iterable = collections.abc.Iterable

from nfnets.models.resnet import nf_resnet18  # noqa: E402


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.model = nf_resnet18(num_classes=classes)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return [100]
