"""Twin dueling Q-network, from elegantrl."""

import torch
from elegantrl.agents.net import QNetTwinDuel
from torch import nn


class Model(nn.Module):
    def __init__(self, state, action):
        super().__init__()
        self.model = QNetTwinDuel([128, 64], state, action)

    def forward(self, states):
        return self.model(states), self.model.get_q1_q2(states)


def get_inputs():
    return [torch.randn(64, 24)]


def get_init_inputs():
    return [24, 6]
