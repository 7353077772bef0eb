"""One step of a recurrent state-space world model: encode, advance, infer, decode."""

import torch
from rssmlite.rssm import RSSM
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = RSSM(
            obs_dim=24,
            action_dim=6,
            deter_dim=128,
            embed_dim=64,
            num_categoricals=8,
            num_classes=8,
            hidden_dim=128,
        )

    def forward(self, observation, action, deter, stoch):
        deter = self.model.dynamics(deter, stoch, action)
        prior = self.model.dynamics.prior_logits(deter)
        posterior = self.model.posterior_net(deter, self.model.encoder(observation))
        feature = torch.cat([deter, posterior.softmax(-1).flatten(1)], dim=-1)
        return {
            "prior": prior,
            "posterior": posterior,
            "observation": self.model.decoder(feature),
            "reward": self.model.reward_head(feature),
        }


def get_inputs():
    return [torch.randn(8, 24), torch.randn(8, 6), torch.randn(8, 128), torch.rand(8, 64)]


def get_init_inputs():
    return []
