"""Neural additive model: one network of exponential units per feature, outputs summed."""

import torch
from nam.config import defaults
from nam.models import NAM


class Model(torch.nn.Module):
    def __init__(self, features, units):
        super().__init__()
        config = defaults()
        config.activation = "exu"
        config.hidden_sizes = [64, 32]
        config.dropout = 0.1
        self.net = NAM(config, "NAM", num_inputs=features, num_units=units)

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    return [torch.rand(256, 12)]


def get_init_inputs():
    return [12, 256]
