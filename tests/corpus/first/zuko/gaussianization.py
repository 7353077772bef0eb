"""zuko's GF: the log probability under a Gaussianization flow, mixtures of Gaussians and
rotations."""

import torch
from zuko.flows import GF


class Model(torch.nn.Module):
    def __init__(self, features, context, transforms):
        super().__init__()
        self.flow = GF(
            features, context, transforms=transforms, components=6, hidden_features=(32, 32)
        )

    def forward(self, x, context):
        return self.flow(context).log_prob(x)


def get_inputs():
    return [torch.randn(32, 4), torch.randn(32, 2)]


def get_init_inputs():
    return [4, 2, 3]
