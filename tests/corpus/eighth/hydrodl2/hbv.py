"""Differentiable HBV: a network's parameters run a hydrological model of rivers, from hydrodl2."""

import torch
from hydrodl2 import load_model
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden, members):
        super().__init__()
        config = {
            "warm_up": 0,
            "warm_up_states": False,
            "dynamic_params": {"Hbv": []},
            "variables": ["prcp", "tmean", "pet"],
            "nearzero": 1e-5,
            "nmul": members,
        }
        self.hbv = load_model("hbv")(config, device="cpu")
        self.rnn = nn.LSTM(features, hidden)
        self.head = nn.Linear(hidden, self.hbv.learnable_param_count)

    def forward(self, weather, seen):
        out = self.hbv({"x_phy": weather}, self.head(self.rnn(seen)[0]))
        return out["streamflow"]


def get_inputs():
    weather = torch.rand(40, 6, 3) * torch.tensor([12.0, 20.0, 4.0])
    return [weather, torch.randn(40, 6, 9)]


def get_init_inputs():
    return [9, 64, 4]
