"""Hourglass transformer language model with one shortened level."""

import torch
from hourglass_transformer_pytorch import HourglassTransformerLM
from torch import nn


class Model(nn.Module):
    def __init__(self, num_tokens, dim):
        super().__init__()
        self.model = HourglassTransformerLM(
            num_tokens=num_tokens,
            dim=dim,
            max_seq_len=64,
            shorten_factor=2,
            depth=(1, 2, 1),
            heads=4,
            dim_head=16,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 200, (2, 48))]


def get_init_inputs():
    return [200, 64]
