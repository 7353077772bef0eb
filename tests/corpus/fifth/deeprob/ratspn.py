"""RAT-SPN: a random tensorised sum-product network with Gaussian leaves."""

import torch
from deeprob.spn.models import GaussianRatSpn


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.net = GaussianRatSpn(
            features,
            out_classes=10,
            rg_depth=3,
            rg_repetitions=8,
            rg_batch=16,
            rg_sum=16,
            random_state=42,
        )

    def forward(self, x):
        return self.net(x)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128]
