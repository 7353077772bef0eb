"""MC-LSTM: an LSTM whose cells hold mass, gates that only move it, and a trash cell for losses."""

import torch
from neuralhydrology.modelzoo.mclstm import MCLSTM
from neuralhydrology.utils.config import Config

FORCINGS = ["srad", "tmax", "tmin", "vp"]
ATTRIBUTES = [f"attribute_{i}" for i in range(9)]


class Model(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        settings = {
            "model": "mclstm",
            "head": "regression",
            "hidden_size": hidden,
            "initial_forget_bias": 0,
            "output_dropout": 0.0,
            "dynamic_inputs": FORCINGS,
            "mass_inputs": ["prcp"],
            "static_attributes": ATTRIBUTES,
            "target_variables": ["QObs"],
        }
        self.net = MCLSTM(Config(settings, dev_mode=True))

    def forward(self, rain, forcings, attributes):
        series = {name: forcings[..., i, None] for i, name in enumerate(FORCINGS)}
        return self.net({"x_d": {"prcp": rain, **series}, "x_s": attributes})


def get_inputs():
    return [torch.rand(8, 60, 1) * 5, torch.randn(8, 60, 4), torch.randn(8, 9)]


def get_init_inputs():
    return [64]
