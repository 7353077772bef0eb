"""N-BEATS with a trend, a seasonality and two generic stacks: backcasts taken off, forecasts
summed."""

import torch
from nbeats_pytorch.model import NBeatsNet


class Model(torch.nn.Module):
    def __init__(self, backcast, forecast, units):
        super().__init__()
        self.net = NBeatsNet(
            stack_types=(
                NBeatsNet.TREND_BLOCK,
                NBeatsNet.SEASONALITY_BLOCK,
                NBeatsNet.GENERIC_BLOCK,
                NBeatsNet.GENERIC_BLOCK,
            ),
            forecast_length=forecast,
            backcast_length=backcast,
            thetas_dim=(4, 8, 16, 16),
            nb_blocks_per_stack=3,
            hidden_layer_units=units,
        )

    def forward(self, history):
        return self.net(history)


def get_inputs():
    return [torch.randn(16, 60)]


def get_init_inputs():
    return [60, 12, 256]
