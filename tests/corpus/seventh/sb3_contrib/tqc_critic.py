"""TQC of SB3-Contrib: a squashed Gaussian actor and two critics of quantiles for its action."""

import torch
from gymnasium.spaces import Box
from sb3_contrib.tqc.policies import TQCPolicy


class Model(torch.nn.Module):
    def __init__(self, features, actions):
        super().__init__()
        self.policy = TQCPolicy(
            Box(-5.0, 5.0, (features,)), Box(-1.0, 1.0, (actions,)), lambda _: 3e-4
        )

    def forward(self, seen):
        action = self.policy.actor(seen, deterministic=True)
        return action, self.policy.critic(seen, action)


def get_inputs():
    return [torch.randn(64, 17)]


def get_init_inputs():
    return [17, 6]
