"""CEBRA's subsampling encoder for video features: pooled and convolved paths side by side."""

import cebra.models
import torch


class Model(torch.nn.Module):
    def __init__(self, neurons, units, dims):
        super().__init__()
        self.encoder = cebra.models.init("offset20-model-4x-subsample", neurons, units, dims)

    def forward(self, activity):
        return self.encoder(activity)


def get_inputs():
    return [torch.randn(4, 200, 480)]


def get_init_inputs():
    return [200, 128, 16]
