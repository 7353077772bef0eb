"""Neural posterior estimation of lampe: a neural spline flow of the parameters, given what an
embedding network keeps of the observation."""

import torch
from lampe.inference import NPE
from lampe.nn import ResMLP
from zuko.flows import NSF


class Model(torch.nn.Module):
    def __init__(self, parameters, observed):
        super().__init__()
        self.embedding = ResMLP(observed, 32, hidden_features=(128, 128, 64))
        self.npe = NPE(parameters, 32, build=NSF, transforms=3, hidden_features=(64, 64))

    def forward(self, theta, x):
        return self.npe(theta, self.embedding(x))


def get_inputs():
    return [torch.randn(32, 4), torch.randn(32, 80)]


def get_init_inputs():
    return [4, 80]
