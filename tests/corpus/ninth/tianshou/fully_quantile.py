"""Fully parametrised quantile function of tianshou."""

import torch
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import FractionProposalNetwork, FullQuantileFunction
from torch import nn


class Model(nn.Module):
    def __init__(self, observations, actions, fractions):
        super().__init__()
        features = Net(state_shape=observations, hidden_sizes=[256, 256])
        self.quantiles = FullQuantileFunction(
            preprocess_net=features, action_shape=actions, hidden_sizes=[256]
        )
        self.propose = FractionProposalNetwork(fractions, features.output_dim)

    def forward(self, obs):
        (values, fractions, at_taus), _ = self.quantiles(obs, propose_model=self.propose)
        widths = fractions.taus[:, 1:] - fractions.taus[:, :-1]
        expected = (widths[:, None] * values).sum(2)
        return values, at_taus, expected, expected.argmax(1)


def get_inputs():
    return [torch.randn(64, 17)]


def get_init_inputs():
    return [17, 6, 32]
