"""U2-Net, lite: nested U-blocks for salient objects."""

import torch
from saldet.models import create_model
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = create_model("u2net_lite")

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
