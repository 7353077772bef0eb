"""Joint-embedding predictive architecture with a transformer encoder."""

import torch
from jepa.models import JEPA, Encoder, Predictor
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.model = JEPA(Encoder(dim), Predictor(dim * 10))

    def forward(self, state, following):
        return self.model(state, following)


def get_inputs():
    return [torch.randn(4, 10, 64), torch.randn(4, 10, 64)]


def get_init_inputs():
    return [64]
