"""DI-engine: C51 network for image observations."""

import torch
from ding.model import C51DQN
from torch import nn


class Model(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.model = C51DQN(
            obs_shape=obs, action_shape=actions, encoder_hidden_size_list=[32, 64, 64]
        )

    def forward(self, obs):
        return self.model(obs)


def get_inputs():
    return [torch.rand(2, 4, 84, 84)]


def get_init_inputs():
    return [[4, 84, 84], 6]
