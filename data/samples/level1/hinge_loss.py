"""Hinge loss of a binary classifier, with labels of minus one and plus one."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 32768


class Model(nn.Module):
    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        return (1 - predictions * targets).clamp(min=0).mean()


def get_inputs():
    return [torch.randn(BATCH_SIZE), torch.randint(0, 2, (BATCH_SIZE,)).float() * 2 - 1]


def get_init_inputs():
    return []
