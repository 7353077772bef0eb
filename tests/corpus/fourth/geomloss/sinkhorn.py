"""Losses between weighted point clouds: debiased Sinkhorn divergence with annealed blur, energy
distance and a Gaussian kernel norm, on embedded points."""

import torch
from geomloss import SamplesLoss


class Model(torch.nn.Module):
    def __init__(self, width, blur):
        super().__init__()
        self.embed = torch.nn.Sequential(
            torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, 3)
        )
        self.sinkhorn = SamplesLoss("sinkhorn", p=2, blur=blur, scaling=0.7, backend="tensorized")
        self.energy = SamplesLoss("energy", backend="tensorized")
        self.kernel = SamplesLoss("gaussian", blur=0.5, backend="tensorized")

    def forward(self, weights, source, target_weights, target):
        moved = source + self.embed(source)
        pair = (weights.softmax(1), moved, target_weights.softmax(1), target)
        return self.sinkhorn(*pair), self.energy(*pair), self.kernel(*pair)


def get_inputs():
    return [torch.randn(2, 60), torch.rand(2, 60, 3), torch.randn(2, 80), torch.rand(2, 80, 3)]


def get_init_inputs():
    return [64, 0.05]
