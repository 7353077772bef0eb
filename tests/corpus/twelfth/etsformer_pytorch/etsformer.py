"""ETSformer: exponential smoothing transformer for forecasting."""

import torch
from etsformer_pytorch import ETSFormer
from torch import nn


class Model(nn.Module):
    def __init__(self, features, dim):
        super().__init__()
        self.model = ETSFormer(time_features=features, model_dim=dim, layers=2, heads=4, K=4)

    def forward(self, x):
        return self.model(x, num_steps_forecast=8)


def get_inputs():
    return [torch.randn(2, 48, 4)]


def get_init_inputs():
    return [4, 64]
