"""neuralforecast's StemGNN: the graph between series learned by a GRU, Fourier transforms on
its spectrum."""

import torch
from neuralforecast.models import StemGNN


class Model(torch.nn.Module):
    def __init__(self, series):
        super().__init__()
        self.net = StemGNN(h=6, input_size=24, n_series=series, n_stacks=2, multi_layer=2)

    def forward(self, series):
        return self.net({"insample_y": series})


def get_inputs():
    return [torch.randn(4, 24, 10)]


def get_init_inputs():
    return [10]
