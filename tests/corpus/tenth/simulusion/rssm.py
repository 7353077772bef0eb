"""Recurrent state-space model of PlaNet over eight frames, from simulusion."""

import torch
from simulusion.models.rssm import RecurrentStateSpaceModel
from torch import nn


class Model(nn.Module):
    def __init__(self, actions, state):
        super().__init__()
        self.model = RecurrentStateSpaceModel(actions, state_size=state, hidden_size=state)

    def forward(self, frames, actions):
        return self.model(frames, actions)


def get_inputs():
    return [torch.rand(2, 7, 3, 64, 64), torch.randn(2, 6, 4)]


def get_init_inputs():
    return [4, 128]
