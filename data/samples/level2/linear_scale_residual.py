"""Linear layer whose output is scaled by a constant and added to itself, in place."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 256
IN_FEATURES = 1024
OUT_FEATURES = 1024


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        residual = x.clone()
        x *= self.scale
        x += residual
        return x


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES, 0.5]
