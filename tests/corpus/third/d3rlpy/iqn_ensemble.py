"""Two implicit quantile Q functions on pixels: a Nature encoder each, targets of the ensemble.

The quantiles of the greedy policy are fixed in eval mode; the target is the least per quantile.
"""

import torch
from d3rlpy.models.torch.encoders import PixelEncoder
from d3rlpy.models.torch.q_functions import (
    DiscreteEnsembleQFunctionForwarder,
    DiscreteIQNQFunction,
    DiscreteIQNQFunctionForwarder,
)


class Model(torch.nn.Module):
    def __init__(self, actions, quantiles, hidden):
        super().__init__()
        functions = [
            DiscreteIQNQFunction(
                PixelEncoder((4, 84, 84), feature_size=hidden),
                hidden_size=hidden,
                action_size=actions,
                n_quantiles=quantiles,
                n_greedy_quantiles=32,
                embed_size=64,
            )
            for _ in range(2)
        ]
        self.functions = torch.nn.ModuleList(functions)
        self.ensemble = DiscreteEnsembleQFunctionForwarder(
            [DiscreteIQNQFunctionForwarder(each, quantiles) for each in functions], actions
        )

    def forward(self, frames, action):
        values = self.ensemble.compute_expected_q(frames, "mean")
        return values, self.ensemble.compute_target(frames, action, reduction="min")


def get_inputs():
    return [torch.rand(4, 4, 84, 84), torch.randint(0, 6, (4,))]


def get_init_inputs():
    return [6, 64, 512]
