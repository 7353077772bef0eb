"""RealNVP of torchflows: affine coupling layers; the density of vectors given a context."""

import torch
from torchflows.bijections.finite.autoregressive.architectures import RealNVP
from torchflows.flows import Flow


class Model(torch.nn.Module):
    def __init__(self, features, context):
        super().__init__()
        self.model = Flow(RealNVP(features, n_layers=4, context_shape=(context,)))

    def forward(self, x, context):
        return self.model.log_prob(x, context=context)


def get_inputs():
    return [torch.randn(128, 16), torch.randn(128, 6)]


def get_init_inputs():
    return [16, 6]
