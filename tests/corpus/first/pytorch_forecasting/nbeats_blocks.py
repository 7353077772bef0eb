"""pytorch-forecasting's blocks of N-BEATS: seasons, trends and free bases, each subtracted from
what is left."""

import torch
from pytorch_forecasting.models.nbeats.sub_modules import (
    NBEATSGenericBlock,
    NBEATSSeasonalBlock,
    NBEATSTrendBlock,
)


class Model(torch.nn.Module):
    def __init__(self, units, past, future):
        super().__init__()
        self.future = future
        self.blocks = torch.nn.ModuleList()
        for _ in range(2):
            self.blocks.append(NBEATSSeasonalBlock(units, 4, 2, past, future))
            self.blocks.append(NBEATSTrendBlock(units, 3, 2, past, future))
            self.blocks.append(NBEATSGenericBlock(units, 8, 2, past, future))

    def forward(self, series):
        forecast = series.new_zeros(series.shape[0], self.future)
        for block in self.blocks:
            backcast, part = block(series)
            series, forecast = series - backcast, forecast + part
        return forecast, series


def get_inputs():
    return [torch.randn(8, 48)]


def get_init_inputs():
    return [64, 48, 12]
