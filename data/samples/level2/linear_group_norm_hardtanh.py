"""Linear layer with group normalisation of its features, limited to a range by hardtanh."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 128
IN_FEATURES = 1024
OUT_FEATURES = 1024
NUM_GROUPS = 16


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, num_groups: int, limit: float):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_features, out_features),
            nn.GroupNorm(num_groups, out_features),
            nn.Hardtanh(min_val=-limit, max_val=limit),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES, NUM_GROUPS, 2.0]
