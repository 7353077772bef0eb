"""GotenNet: molecules with spherical tensor features up to degree 2, hierarchical refinement of
edges, residual streams; moves coordinates. Padded atoms are negative."""

import torch
from gotennet_pytorch import GotenNet


class Model(torch.nn.Module):
    def __init__(self, dim, depth, degree):
        super().__init__()
        self.net = GotenNet(
            dim=dim,
            depth=depth,
            max_degree=degree,
            heads=4,
            dim_head=32,
            cutoff_radius=5.0,
            num_residual_streams=2,
        )

    def forward(self, atoms, coordinates, bonds):
        return self.net(atoms, coordinates, adj_mat=bonds)


def get_inputs():
    atoms = torch.randint(0, 14, (2, 12))
    atoms[1, 9:] = -1
    bonds = torch.rand(2, 12, 12) > 0.6
    return [atoms, torch.randn(2, 12, 3) * 2, bonds | bonds.mT]


def get_init_inputs():
    return [128, 4, 2]
