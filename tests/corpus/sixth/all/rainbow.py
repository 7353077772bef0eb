"""Rainbow of the autonomous-learning-library: a distribution of returns for each action of an Atari
game, from a dueling head of noisy layers."""

from types import SimpleNamespace

import torch
from all.presets.atari.models import nature_rainbow


class Model(torch.nn.Module):
    def __init__(self, actions, atoms):
        super().__init__()
        env = SimpleNamespace(action_space=SimpleNamespace(n=actions))
        self.net = nature_rainbow(env, hidden=256, atoms=atoms)
        self.actions = actions
        self.register_buffer("returns", torch.linspace(-10, 10, atoms))

    def forward(self, frames):
        probabilities = self.net(frames).unflatten(1, (self.actions, -1)).softmax(dim=-1)
        values = (probabilities * self.returns).sum(dim=-1)
        return probabilities, values, values.argmax(dim=1)


def get_inputs():
    return [torch.randint(0, 256, (4, 4, 84, 84)).float()]


def get_init_inputs():
    return [6, 51]
