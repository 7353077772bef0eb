"""Linear layer whose neighbouring features are max-pooled in pairs, summed, and scaled."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 128
IN_FEATURES = 1024
OUT_FEATURES = 2048


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, kernel_size: int, scale: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.max_pool = nn.MaxPool1d(kernel_size)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        x = self.max_pool(x.unsqueeze(1)).squeeze(1)
        return torch.sum(x, dim=1) * self.scale


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES, 2, 0.5]
