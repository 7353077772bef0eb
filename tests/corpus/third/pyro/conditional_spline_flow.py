"""Pyro: the log-likelihood of a flow on the condition of a context, made of spline autoregressive
layers with permutations and batch norm between them, and conditional affine couplings."""

import torch
from pyro.distributions import (
    ConditionalTransformedDistribution,
    Normal,
    transforms,
)


class Model(torch.nn.Module):
    def __init__(self, dim, context, depth):
        super().__init__()
        self.dim = dim
        layers = []
        for _ in range(depth):
            layers.append(
                transforms.spline_autoregressive(dim, hidden_dims=[64, 64], order="linear")
            )
            layers.append(
                transforms.conditional_affine_coupling(dim, context, hidden_dims=[64, 64])
            )
            layers.append(transforms.permute(dim, torch.randperm(dim)))
        self.layers = layers
        self.modules_ = torch.nn.ModuleList(x for x in layers if isinstance(x, torch.nn.Module))
        self.register_buffer("zero", torch.zeros(dim))

    def forward(self, x, context):
        base = Normal(self.zero, torch.ones_like(self.zero))
        flow = ConditionalTransformedDistribution(base, self.layers)
        return flow.condition(context).log_prob(x)


def get_inputs():
    return [torch.randn(32, 8), torch.randn(32, 5)]


def get_init_inputs():
    return [8, 5, 3]
