"""RecurrentPPO's policy of SB3-Contrib: an LSTM over observations since the last episode's start;
the most likely action, its value and its log-probability."""

import torch
from gymnasium.spaces import Box, Discrete
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_contrib.common.recurrent.type_aliases import RNNStates


class Model(torch.nn.Module):
    def __init__(self, features, actions, width):
        super().__init__()
        self.policy = RecurrentActorCriticPolicy(
            Box(-5.0, 5.0, (features,)),
            Discrete(actions),
            lambda _: 3e-4,
            lstm_hidden_size=width,
        )

    def forward(self, seen, hidden, cell, starts):
        states = RNNStates((hidden, cell), (hidden, cell))
        return self.policy(seen, states, starts, deterministic=True)


def get_inputs():
    return [
        torch.randn(8, 24),
        torch.randn(1, 8, 128),
        torch.randn(1, 8, 128),
        (torch.rand(8) < 0.2).float(),
    ]


def get_init_inputs():
    return [24, 6, 128]
