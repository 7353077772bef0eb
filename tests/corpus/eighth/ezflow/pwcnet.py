"""PWC-Net of ezflow with its default configuration for optical flow."""

import torch
from ezflow.models import PWCNet, get_default_model_cfg
from torch import nn


class Model(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.model = PWCNet(get_default_model_cfg(name))

    def forward(self, first, second):
        return self.model(first, second)


def get_inputs():
    return [torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return ["PWCNet"]
