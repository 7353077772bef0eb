"""Continual retroactive transformer encoder on a whole sequence."""

import continual as co
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = co.SingleOutputTransformerEncoderLayer(
            d_model=32,
            nhead=4,
            dim_feedforward=64,
            dropout=0.0,
            sequence_len=16,
            single_output_forward=True,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 32, 16)]


def get_init_inputs():
    return []
