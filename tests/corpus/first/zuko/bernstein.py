"""zuko's BPF: the log probability under monotonic Bernstein polynomials."""

import torch
from zuko.flows import BPF


class Model(torch.nn.Module):
    def __init__(self, features, context):
        super().__init__()
        self.flow = BPF(features, context, degree=12, transforms=2, hidden_features=(48, 48))

    def forward(self, x, context):
        return self.flow(context).log_prob(x)


def get_inputs():
    return [torch.rand(32, 4), torch.randn(32, 2)]


def get_init_inputs():
    return [4, 2]
