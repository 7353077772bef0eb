"""Linear classifier with dropout before its softmax."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 128
IN_FEATURES = 2048
NUM_CLASSES = 1000


class Model(nn.Module):
    def __init__(self, in_features: int, num_classes: int, dropout_p: float):
        super().__init__()
        self.fc = nn.Linear(in_features, num_classes)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(self.fc(x))
        return torch.softmax(x, dim=1)


def get_inputs():
    return [4.0 * torch.randn(BATCH_SIZE, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, NUM_CLASSES, 0.2]
