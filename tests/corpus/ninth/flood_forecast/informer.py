"""Informer of flood_forecast on hourly data with time marks."""

import torch
from flood_forecast.transformer_xl.informer import Informer
from torch import nn


class Model(nn.Module):
    def __init__(self, series, history, horizon):
        super().__init__()
        self.model = Informer(
            n_time_series=series,
            dec_in=series,
            c_out=1,
            seq_len=history,
            label_len=horizon,
            out_len=horizon,
            d_model=128,
            n_heads=8,
            e_layers=2,
            d_layers=1,
            d_ff=256,
            attn="full",
            device=torch.device("cpu"),
        )

    def forward(self, past, past_marks, future, future_marks):
        return self.model(past, past_marks, future, future_marks)


def marks(batch, steps):
    hour = torch.arange(steps) % 24
    day = torch.arange(steps) // 24 % 7
    stamp = torch.stack([torch.full_like(hour, 5), day + 1, day, hour], 1)
    return stamp.expand(batch, -1, -1).contiguous()


def get_inputs():
    return [torch.randn(4, 96, 7), marks(4, 96), torch.randn(4, 48, 7), marks(4, 48)]


def get_init_inputs():
    return [7, 96, 24]
