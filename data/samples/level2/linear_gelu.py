"""Linear layer followed by GELU, the first half of a transformer's MLP."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 8
SEQ_LEN = 128
IN_FEATURES = 768
OUT_FEATURES = 3072


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(BATCH_SIZE, SEQ_LEN, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES]
