"""SAC: a squashed Gaussian actor's mean action, judged by two critics."""

import gymnasium
import numpy
import torch
from stable_baselines3.sac.policies import SACPolicy


class Model(torch.nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        space = gymnasium.spaces.Box(-numpy.inf, numpy.inf, (observations,), numpy.float32)
        self.policy = SACPolicy(
            space, gymnasium.spaces.Box(-1, 1, (actions,), numpy.float32), lambda progress: 3e-4
        )

    def forward(self, observation):
        action = self.policy.actor(observation, deterministic=True)
        return action, *self.policy.critic(observation, action)


def get_inputs():
    return [torch.randn(32, 17)]


def get_init_inputs():
    return [17, 6]
