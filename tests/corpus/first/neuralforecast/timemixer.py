"""neuralforecast's TimeMixer: seasons mixed from fine to coarse and trends from coarse to fine."""

import torch
from neuralforecast.models import TimeMixer


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = TimeMixer(
            h=12,
            input_size=48,
            n_series=5,
            d_model=width,
            d_ff=2 * width,
            e_layers=layers,
            down_sampling_layers=2,
            moving_avg=9,
        )

    def forward(self, series):
        return self.net({"insample_y": series, "futr_exog": None})


def get_inputs():
    return [torch.randn(2, 48, 5)]


def get_init_inputs():
    return [16, 2]
