"""Conformer speech encoder with relative positions and depthwise convolution modules, CTC head."""

import torch
from conformer import Conformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.subsample = torch.nn.Conv1d(80, dim, 3, stride=2, padding=1)
        self.encoder = Conformer(
            dim=dim, depth=depth, dim_head=36, heads=4, ff_mult=4, conv_kernel_size=31
        )
        self.head = torch.nn.Linear(dim, 128)

    def forward(self, mel):
        hidden = self.subsample(mel).transpose(1, 2)
        return self.head(self.encoder(hidden)).log_softmax(-1)


def get_inputs():
    return [torch.randn(2, 80, 320)]


def get_init_inputs():
    return [144, 8]
