"""TimesNet: periods found by FFT, then 2D inception blocks."""

import torch
from basicts.models.TimesNet import TimesNetConfig, TimesNetForForecasting
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = TimesNetForForecasting(
            TimesNetConfig(
                input_len=48,
                output_len=24,
                num_features=7,
                hidden_size=32,
                intermediate_size=32,
                num_layers=2,
                top_k=3,
            )
        )

    def forward(self, x):
        return self.model(x, None)


def get_inputs():
    return [torch.randn(2, 48, 7)]


def get_init_inputs():
    return []
