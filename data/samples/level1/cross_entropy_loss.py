"""Cross entropy between class scores and integer labels, averaged over the batch."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 4096
NUM_CLASSES = 100


class Model(nn.Module):
    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels)


def get_inputs():
    return [torch.randn(BATCH_SIZE, NUM_CLASSES), torch.randint(0, NUM_CLASSES, (BATCH_SIZE,))]


def get_init_inputs():
    return []
