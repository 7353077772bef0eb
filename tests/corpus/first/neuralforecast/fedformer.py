"""neuralforecast's FEDformer: attention between Fourier modes, series taken apart into trend
and season."""

import torch
from neuralforecast.models import FEDformer


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = FEDformer(
            h=12,
            input_size=48,
            hidden_size=width,
            n_head=8,
            modes=8,
            conv_hidden_size=32,
            MovingAvg_window=9,
            futr_exog_list=["a", "b"],
        )

    def forward(self, series, future):
        return self.net({"insample_y": series, "futr_exog": future})


def get_inputs():
    return [torch.randn(4, 48, 1), torch.randn(4, 60, 2)]


def get_init_inputs():
    return [64]
