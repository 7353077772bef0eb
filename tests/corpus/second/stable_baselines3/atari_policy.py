"""An actor-critic policy over stacked frames: NatureCNN, then logits and a value."""

import gymnasium
import numpy
import torch
from stable_baselines3.common.policies import ActorCriticCnnPolicy


class Model(torch.nn.Module):
    def __init__(self, actions):
        super().__init__()
        frames = gymnasium.spaces.Box(0, 255, (4, 84, 84), numpy.uint8)
        self.policy = ActorCriticCnnPolicy(
            frames, gymnasium.spaces.Discrete(actions), lambda progress: 1e-4
        )

    def forward(self, frames):
        actions, values, log_probability = self.policy(frames, deterministic=True)
        return actions, values, log_probability


def get_inputs():
    return [torch.randint(0, 256, (4, 4, 84, 84), dtype=torch.uint8)]


def get_init_inputs():
    return [6]
