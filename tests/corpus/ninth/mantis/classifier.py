"""Mantis, a foundation model that embeds time series, with a head for classes."""

import torch
from mantis.architecture import MantisV1
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.encoder = MantisV1(seq_len=512, hidden_dim=256, num_patches=32, device="cpu")
        self.head = nn.Sequential(nn.LayerNorm(channels * 256), nn.Linear(channels * 256, classes))

    def forward(self, x):
        tokens = [self.encoder(x[:, [i]]) for i in range(x.shape[1])]
        return self.head(torch.cat(tokens, -1))


def get_inputs():
    return [torch.randn(4, 3, 512)]


def get_init_inputs():
    return [3, 6]
