"""FlowConductor: a conditional masked autoregressive flow, log density."""

import torch
from flowcon.distributions.normal import StandardNormal
from flowcon.flows import Flow
from flowcon.transforms import (
    CompositeTransform,
    MaskedAffineAutoregressiveTransform,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
    ReversePermutation,
)
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden, context):
        super().__init__()
        layers = []
        for _ in range(2):
            layers += [
                ReversePermutation(features),
                MaskedAffineAutoregressiveTransform(features, hidden, context_features=context),
                MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
                    features=features,
                    hidden_features=hidden,
                    context_features=context,
                    tails="linear",
                    tail_bound=3.0,
                ),
            ]
        self.flow = Flow(CompositeTransform(layers), StandardNormal([features]))

    def forward(self, x, context):
        return self.flow.log_prob(x, context=context)


def get_inputs():
    return [torch.randn(16, 8), torch.randn(16, 4)]


def get_init_inputs():
    return [8, 64, 4]
