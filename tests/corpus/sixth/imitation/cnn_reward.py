"""A reward network over pictures, from imitation: convolutions read the states before and after an
action."""

import gymnasium as gym
import numpy as np
import torch
from imitation.rewards.reward_nets import CnnRewardNet


class Model(torch.nn.Module):
    def __init__(self, size, actions):
        super().__init__()
        self.net = CnnRewardNet(
            gym.spaces.Box(0, 255, (3, size, size), np.uint8),
            gym.spaces.Discrete(actions),
            use_next_state=True,
            hwc_format=False,
        )

    def forward(self, state, action, after, done):
        action = torch.nn.functional.one_hot(action, self.net.action_space.n).float()
        return self.net(state, action, after, done)


def get_inputs():
    return [
        torch.rand(8, 3, 64, 64),
        torch.randint(0, 5, (8,)),
        torch.rand(8, 3, 64, 64),
        torch.zeros(8),
    ]


def get_init_inputs():
    return [64, 5]
