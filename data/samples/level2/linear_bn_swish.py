"""Linear layer with batch normalisation, a scalar bias, a division, and Swish."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 256
IN_FEATURES = 1024
OUT_FEATURES = 2048


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, divisor: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features)
        self.bias = nn.Parameter(torch.randn(1))
        self.divisor = divisor

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn(self.linear(x))
        x = (x + self.bias) / self.divisor
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES, 2.0]
