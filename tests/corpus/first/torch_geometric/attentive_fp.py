"""torch_geometric's AttentiveFP: molecules' fingerprints by graph attention and GRU cells."""

import torch
from torch_geometric.nn.models import AttentiveFP


class Model(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = AttentiveFP(39, hidden, 1, edge_dim=10, num_layers=3, num_timesteps=2)

    def forward(self, atoms, edge_index, bonds):
        return self.net(atoms, edge_index, bonds, torch.arange(4).repeat_interleave(16))


def get_inputs():
    edges = torch.cat([torch.randint(16 * i, 16 * i + 16, (2, 36)) for i in range(4)], 1)
    return [torch.randn(64, 39), edges, torch.randn(144, 10)]


def get_init_inputs():
    return [64]
