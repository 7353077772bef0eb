"""CLIPNET: dilated residual convolutions from DNA to a stranded profile and counts."""

import torch
from personal_bpnet import CLIPNET
from torch import nn


class Model(nn.Module):
    def __init__(self, filters, layers):
        super().__init__()
        self.model = CLIPNET(n_filters=filters, n_layers=layers, trimming=100, verbose=False)

    def forward(self, dna):
        return self.model(dna)


def get_inputs():
    return [nn.functional.one_hot(torch.randint(0, 4, (2, 600)), 4).float().transpose(1, 2)]


def get_init_inputs():
    return [64, 6]
