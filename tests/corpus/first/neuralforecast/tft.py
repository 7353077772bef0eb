"""neuralforecast's TFT: variable selection by gated residual networks, LSTMs, attention that
can be read."""

import torch
from neuralforecast.models import TFT


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = TFT(
            h=8,
            input_size=24,
            hidden_size=width,
            n_head=4,
            futr_exog_list=["a", "b"],
            hist_exog_list=["c"],
            stat_exog_list=["d"],
        )

    def forward(self, series, future, past, static):
        return self.net(
            {"insample_y": series, "futr_exog": future, "hist_exog": past, "stat_exog": static}
        )


def get_inputs():
    return [torch.randn(4, 24, 1), torch.randn(4, 32, 2), torch.randn(4, 24, 1), torch.randn(4, 1)]


def get_init_inputs():
    return [32]
