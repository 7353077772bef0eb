"""zuko's NSF: the log probability of samples by masked networks and rational quadratic splines."""

import torch
from zuko.flows import NSF


class Model(torch.nn.Module):
    def __init__(self, features, context, transforms):
        super().__init__()
        self.flow = NSF(features, context, bins=8, transforms=transforms, hidden_features=(64, 64))

    def forward(self, x, context):
        return self.flow(context).log_prob(x)


def get_inputs():
    return [torch.randn(32, 5), torch.randn(32, 3)]


def get_init_inputs():
    return [5, 3, 3]
