"""Linear layer reduced to a value a sample by logsumexp, then a threshold, leaky ReLU and GELU."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 512
IN_FEATURES = 512
OUT_FEATURES = 1024


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, threshold: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        x = torch.logsumexp(self.linear(x), dim=1, keepdim=True)
        x = F.leaky_relu(x - self.threshold, negative_slope=0.01)
        return F.gelu(x)


def get_inputs():
    return [4.0 * torch.randn(BATCH_SIZE, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES, 9.5]
