"""A policy and a value of skrl that share a network built from a description: a convolution on the
picture, dense layers after it, and a Gaussian over actions."""

import gymnasium
import torch
from skrl.utils.model_instantiators.torch import deterministic_model, gaussian_model

NETWORK = [
    {
        "name": "features",
        "input": "permute(OBSERVATIONS, (0, 3, 1, 2))",
        "layers": [
            {"conv2d": {"out_channels": 32, "kernel_size": 8, "stride": 4}},
            {"conv2d": {"out_channels": 64, "kernel_size": 4, "stride": 2}},
            {"conv2d": {"out_channels": 64, "kernel_size": 3, "stride": 1}},
            "flatten",
        ],
        "activations": "relu",
    },
    {"name": "dense", "input": "features", "layers": [256, 128], "activations": "elu"},
]


class Model(torch.nn.Module):
    def __init__(self, size, actions):
        super().__init__()
        space = {
            "observation_space": gymnasium.spaces.Box(0, 1, (size, size, 3)),
            "action_space": gymnasium.spaces.Box(-1, 1, (actions,)),
            "device": "cpu",
            "network": NETWORK,
        }
        self.policy = gaussian_model(**space, output="ACTIONS", initial_log_std=-0.5)
        self.value = deterministic_model(**space, output="ONE")
        self.forward(torch.zeros(1, size, size, 3))  # skrl's layers find their sizes in a first run

    def forward(self, picture):
        seen = {"observations": picture.flatten(1)}
        action, extra = self.policy.act(seen, role="policy")
        value, _ = self.value.act(seen, role="value")
        return action, extra["log_prob"], extra["mean_actions"], value


def get_inputs():
    return [torch.rand(4, 64, 64, 3)]


def get_init_inputs():
    return [64, 3]
