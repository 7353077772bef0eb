"""Entity-aware LSTM for stream flow: static catchment attributes drive the input gate only.

Its time loop is plain Python, and its head gives a mixture of asymmetric Laplace distributions.
"""

import torch
from neuralhydrology.modelzoo.ealstm import EALSTM
from neuralhydrology.utils.config import Config

FORCINGS = ["prcp", "srad", "tmax", "tmin", "vp"]
ATTRIBUTES = [f"attribute_{i}" for i in range(27)]


class Model(torch.nn.Module):
    def __init__(self, hidden, mixtures):
        super().__init__()
        settings = {
            "model": "ealstm",
            "head": "cmal",
            "n_distributions": mixtures,
            "hidden_size": hidden,
            "initial_forget_bias": 3,
            "output_dropout": 0.4,
            "dynamic_inputs": FORCINGS,
            "static_attributes": ATTRIBUTES,
            "target_variables": ["QObs"],
            "statics_embedding": {
                "type": "fc",
                "hiddens": [30, 20, 64],
                "activation": "tanh",
                "dropout": 0.0,
            },
        }
        self.net = EALSTM(Config(settings, dev_mode=True))

    def forward(self, forcings, attributes):
        series = {name: forcings[..., i, None] for i, name in enumerate(FORCINGS)}
        return self.net({"x_d": series, "x_s": attributes})


def get_inputs():
    return [torch.randn(8, 90, 5), torch.randn(8, 27)]


def get_init_inputs():
    return [128, 3]
