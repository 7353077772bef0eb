"""ParticleNet's edge convolutions on clouds of particles from weaver-core."""

import torch
from torch import nn
from weaver.nn.model.ParticleNet import ParticleNet


class Model(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.model = ParticleNet(
            features,
            classes,
            conv_params=[(7, (32, 32, 32)), (7, (64, 64, 64))],
            fc_params=[(128, 0.1)],
            trim=False,
        )

    def forward(self, points, features, mask):
        return self.model(points, features, mask)


def get_inputs():
    mask = torch.ones(4, 1, 40)
    mask[1, :, 31:] = 0
    return [torch.randn(4, 2, 40), torch.randn(4, 8, 40), mask]


def get_init_inputs():
    return [8, 5]
