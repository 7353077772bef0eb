"""HIP-NN with tensor sensitivities: a potential energy from pairs of atoms, one term an order."""

import os

os.environ["HIPPYNN_USE_CUSTOM_KERNELS"] = "pytorch"

import torch
from hippynn.networks.hipnn import HipnnVec


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = HipnnVec(
            n_features=width,
            n_sensitivities=20,
            dist_soft_min=0.85,
            dist_soft_max=5.0,
            dist_hard_max=6.5,
            n_atom_layers=3,
            n_interaction_layers=2,
            possible_species=[0, 1, 6, 7, 8],
        )
        self.heads = torch.nn.ModuleList([torch.nn.Linear(n, 1) for n in (4, width, width)])

    def forward(self, species, positions, pairs):
        first, second = pairs
        offset = positions[second] - positions[first]
        layers = self.net(species, first, second, offset.norm(dim=1), offset)
        return torch.stack([head(x).sum() for head, x in zip(self.heads, layers, strict=True)])


def get_inputs():
    species = torch.eye(4)[torch.randint(0, 4, (20,))]
    positions = 2.0 * torch.randn(20, 3)
    pairs = torch.nonzero(~torch.eye(20, dtype=torch.bool)).T.contiguous()
    return [species, positions, pairs]


def get_init_inputs():
    return [64]
