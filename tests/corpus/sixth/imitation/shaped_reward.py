"""The reward of adversarial inverse reinforcement learning, from imitation: a learned reward shaped
by a potential of the states."""

import gymnasium as gym
import numpy as np
import torch
from imitation.rewards.reward_nets import BasicShapedRewardNet
from imitation.util.networks import RunningNorm


class Model(torch.nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.net = BasicShapedRewardNet(
            gym.spaces.Box(-np.inf, np.inf, (states,), np.float32),
            gym.spaces.Discrete(actions),
            reward_hid_sizes=(64, 64),
            potential_hid_sizes=(64, 64),
            normalize_input_layer=RunningNorm,
        )

    def forward(self, state, action, after, done):
        action = torch.nn.functional.one_hot(action, self.net.action_space.n).float()
        return self.net(state, action, after, done)


def get_inputs():
    return [
        torch.randn(64, 11),
        torch.randint(0, 4, (64,)),
        torch.randn(64, 11),
        (torch.rand(64) < 0.1).float(),
    ]


def get_init_inputs():
    return [11, 4]
