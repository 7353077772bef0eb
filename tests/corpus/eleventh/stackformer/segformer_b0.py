"""SegFormer with the smallest encoder."""

import torch
from stackformer.vision.segformer import StackFormerSegformer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = StackFormerSegformer(variant="b0", num_labels=19)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
