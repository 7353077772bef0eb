"""The log density of a masked autoregressive flow: masked residual networks, permutations
between the layers."""

import torch
from nflows.flows import MaskedAutoregressiveFlow


class Model(torch.nn.Module):
    def __init__(self, features, layers):
        super().__init__()
        self.flow = MaskedAutoregressiveFlow(
            features=features,
            hidden_features=64,
            num_layers=layers,
            num_blocks_per_layer=2,
            use_random_permutations=True,
        )

    def forward(self, x):
        return self.flow.log_prob(x)


def get_inputs():
    return [torch.randn(128, 6)]


def get_init_inputs():
    return [6, 4]
