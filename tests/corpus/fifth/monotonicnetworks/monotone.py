"""A network with bounded slope that is monotone in some of its features."""

import monotonicnetworks as lmn
import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        net = torch.nn.Sequential(
            lmn.LipschitzLinear(features, 128, kind="one-inf"),
            lmn.GroupSort(2),
            lmn.LipschitzLinear(128, 128, kind="inf"),
            lmn.GroupSort(2),
            lmn.LipschitzLinear(128, 128, kind="inf"),
            lmn.GroupSort(2),
            lmn.LipschitzLinear(128, 1, kind="inf"),
        )
        signs = [1, 1, 1, -1] + [0] * (features - 4)
        self.net = lmn.MonotonicWrapper(net, lipschitz_const=1.0, monotonic_constraints=signs)

    def forward(self, x):
        return self.net(x)


def get_inputs():
    return [torch.randn(128, 12)]


def get_init_inputs():
    return [12]
