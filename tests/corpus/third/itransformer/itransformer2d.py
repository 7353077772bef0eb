"""iTransformer with two axes: attention over the variates and over the time tokens of each, with
hyper-connections between the layers and reversible instance norm; two forecast horizons."""

import torch
from iTransformer import iTransformer2D


class Model(torch.nn.Module):
    def __init__(self, variates, lookback, dim, depth):
        super().__init__()
        self.net = iTransformer2D(
            num_variates=variates,
            num_time_tokens=16,
            lookback_len=lookback,
            depth=depth,
            dim=dim,
            pred_length=(12, 48),
            heads=8,
            dim_head=32,
            use_reversible_instance_norm=True,
        )

    def forward(self, series):
        return self.net(series)


def get_inputs():
    return [torch.randn(2, 96, 21)]


def get_init_inputs():
    return [21, 96, 128, 3]
