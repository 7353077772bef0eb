"""medicaltorch's atrous spatial pyramid without pooling."""

import torch
from medicaltorch.models import NoPoolASPP
from torch import nn


class Model(nn.Module):
    def __init__(self, filters):
        super().__init__()
        self.model = NoPoolASPP(base_num_filters=filters)

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(1, 1, 80, 80)]


def get_init_inputs():
    return [32]
