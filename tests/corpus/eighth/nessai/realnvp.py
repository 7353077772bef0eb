"""Coupling flow of nessai for nested sampling, there and back."""

import torch
from nessai.flows import RealNVP
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, hidden, transforms):
        super().__init__()
        self.model = RealNVP(dim, hidden, transforms, 2, net="resnet")

    def forward(self, x):
        z, log_j = self.model.forward(x)
        back, _ = self.model.inverse(z)
        return z, log_j, back, self.model.log_prob(x)


def get_inputs():
    return [torch.randn(64, 8)]


def get_init_inputs():
    return [8, 64, 6]
