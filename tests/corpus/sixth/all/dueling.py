"""Dueling double DQN of the autonomous-learning-library: a value and the advantages of the actions
from four Atari frames."""

from types import SimpleNamespace

import torch
from all.presets.atari.models import nature_ddqn


class Model(torch.nn.Module):
    def __init__(self, actions):
        super().__init__()
        env = SimpleNamespace(action_space=SimpleNamespace(n=actions))
        self.online, self.target = nature_ddqn(env), nature_ddqn(env)
        for net in (self.online, self.target):
            for parameter in net.parameters():
                if not parameter.any():  # the last layer starts as zero
                    torch.nn.init.normal_(parameter, std=0.02)

    def forward(self, frames, after, reward):
        best = self.online(after).argmax(dim=1, keepdim=True)
        future = self.target(after).gather(1, best).squeeze(1)
        return self.online(frames), reward + 0.99 * future


def get_inputs():
    frames = torch.randint(0, 256, (2, 4, 4, 84, 84)).float()
    return [frames[0], frames[1], torch.randn(4)]


def get_init_inputs():
    return [9]
