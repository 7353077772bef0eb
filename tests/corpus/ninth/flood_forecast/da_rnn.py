"""Recurrent network with dual-stage attention for river flow, from flood_forecast."""

import torch
from flood_forecast.da_rnn.model import DARNN
from torch import nn


class Model(nn.Module):
    def __init__(self, series, hidden, history):
        super().__init__()
        self.model = DARNN(
            n_time_series=series,
            hidden_size_encoder=hidden,
            forecast_history=history,
            decoder_hidden_size=hidden,
            out_feats=1,
            dropout=0.1,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(8, 29, 6)]


def get_init_inputs():
    return [6, 64, 30]
