"""DI-engine: decision transformer for offline reinforcement learning."""

import torch
from ding.model import DecisionTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, state, action, blocks, hidden):
        super().__init__()
        self.model = DecisionTransformer(
            state_dim=state,
            act_dim=action,
            n_blocks=blocks,
            h_dim=hidden,
            context_len=20,
            n_heads=4,
            drop_p=0.1,
            continuous=True,
        )

    def forward(self, timesteps, states, actions, returns):
        return self.model(timesteps, states, actions, returns)


def get_inputs():
    return [
        torch.randint(0, 100, (2, 20)),
        torch.randn(2, 20, 11),
        torch.randn(2, 20, 3),
        torch.randn(2, 20, 1),
    ]


def get_init_inputs():
    return [11, 3, 3, 96]
