"""neuralforecast's TimesNet: periods found by a Fourier transform, the series folded by them
and convolved in two dimensions."""

import torch
from neuralforecast.models import TimesNet


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = TimesNet(
            h=12,
            input_size=36,
            hidden_size=width,
            conv_hidden_size=width,
            top_k=2,
            num_kernels=3,
            encoder_layers=2,
        )

    def forward(self, series):
        return self.net({"insample_y": series, "futr_exog": None})


def get_inputs():
    return [torch.randn(4, 36, 1)]


def get_init_inputs():
    return [32]
