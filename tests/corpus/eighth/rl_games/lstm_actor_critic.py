"""Recurrent actor-critic network of rl_games."""

import torch
from rl_games.algos_torch.network_builder import A2CBuilder
from torch import nn


class Model(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        builder = A2CBuilder()
        builder.load(
            {
                "name": "actor_critic",
                "separate": False,
                "space": {
                    "continuous": {
                        "mu_activation": "None",
                        "sigma_activation": "None",
                        "mu_init": {"name": "default"},
                        "sigma_init": {"name": "const_initializer", "val": 0},
                        "fixed_sigma": True,
                    }
                },
                "mlp": {
                    "units": [256, 128],
                    "activation": "elu",
                    "initializer": {"name": "default"},
                    "d2rl": False,
                },
                "rnn": {
                    "name": "lstm",
                    "units": 128,
                    "layers": 1,
                    "before_mlp": True,
                    "layer_norm": True,
                },
            }
        )
        self.model = builder.build(
            "a2c", input_shape=(observations,), actions_num=actions, num_seqs=4, value_size=1
        )

    def forward(self, obs, hidden, cell):
        mu, sigma, value, states = self.model(
            {"obs": obs, "rnn_states": (hidden, cell), "seq_length": 1, "is_train": False}
        )
        return mu, sigma, value, states[0], states[1]


def get_inputs():
    return [torch.randn(4, 36), torch.zeros(1, 4, 128), torch.zeros(1, 4, 128)]


def get_init_inputs():
    return [36, 8]
