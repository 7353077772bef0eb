"""Linear classifier and its loss in one: cross entropy with label smoothing over integer labels."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 512
IN_FEATURES = 768
NUM_CLASSES = 1000


class Model(nn.Module):
    def __init__(self, in_features: int, num_classes: int, smoothing: float):
        super().__init__()
        self.head = nn.Linear(in_features, num_classes)
        self.smoothing = smoothing

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        logits = self.head(features)
        return F.cross_entropy(logits, labels, label_smoothing=self.smoothing, reduction="none")


def get_inputs():
    return [torch.randn(BATCH_SIZE, IN_FEATURES), torch.randint(0, NUM_CLASSES, (BATCH_SIZE,))]


def get_init_inputs():
    return [IN_FEATURES, NUM_CLASSES, 0.1]
