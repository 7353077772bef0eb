"""Hybrid hydrology: an LSTM gives the daily parameters of a conceptual bucket model (SHM).

The bucket model (snow, unsaturated zone, fast flow, interflow, base flow) is stepped day by day.
"""

import torch
from neuralhydrology.modelzoo.hybridmodel import HybridModel
from neuralhydrology.utils.config import Config

FORCINGS = ["prcp", "srad", "tmax", "tmin", "vp", "pet"]
ATTRIBUTES = [f"attribute_{i}" for i in range(9)]
CONCEPTUAL = ["prcp", "pet", "tmax", "tmin"]


class Model(torch.nn.Module):
    def __init__(self, hidden, warmup):
        super().__init__()
        settings = {
            "model": "hybrid_model",
            "conceptual_model": "SHM",
            "head": "regression",
            "hidden_size": hidden,
            "initial_forget_bias": 3,
            "output_dropout": 0.2,
            "warmup_period": warmup,
            "dynamic_inputs": FORCINGS,
            "dynamic_conceptual_inputs": CONCEPTUAL,
            "static_attributes": ATTRIBUTES,
            "target_variables": ["QObs"],
            "predict_last_n": 30,
            "custom_normalization": {
                name: {"centering": "None", "scaling": "None"} for name in [*CONCEPTUAL, "QObs"]
            },
            "seq_length": 90,
        }
        self.net = HybridModel(Config(settings, dev_mode=True))

    def forward(self, forcings, attributes):
        series = {name: forcings[..., i, None] for i, name in enumerate(FORCINGS)}
        return self.net({"x_d": series, "x_s": attributes})


def get_inputs():
    return [torch.rand(4, 90, 6) * 10, torch.randn(4, 9)]


def get_init_inputs():
    return [64, 30]
