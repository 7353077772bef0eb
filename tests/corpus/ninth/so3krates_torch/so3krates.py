"""So3krates, an equivariant transformer for the energy of atoms, from so3krates_torch."""

import torch
from so3krates_torch.modules.models import So3krates
from torch import nn


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.model = So3krates(
            r_max=5.0,
            num_radial_basis_fn=32,
            degrees=[1, 2, 3, 4],
            num_features=width,
            num_heads=4,
            num_layers=layers,
            avg_num_neighbors=8.0,
            initialize_ev_to_zeros=False,
        )

    def forward(self, numbers, positions, edges, batch, ptr):
        data = {
            "atomic_numbers": numbers,
            "positions": positions,
            "node_attrs": nn.functional.one_hot(numbers - 1, 118).float(),
            "edge_index": edges,
            "shifts": torch.zeros(edges.shape[1], 3),
            "unit_shifts": torch.zeros(edges.shape[1], 3),
            "cell": torch.zeros(6, 3),
            "batch": batch,
            "ptr": ptr,
            "head": torch.zeros(2, dtype=torch.long),
        }
        return self.model(data, compute_force=False)["energy"]


def get_inputs():
    positions = torch.rand(18, 3) * 4
    near = torch.cdist(positions, positions) + 10 * torch.eye(18) < 5
    batch = torch.arange(18) // 9
    edges = (near & (batch[:, None] == batch)).nonzero().T.contiguous()
    return [torch.randint(1, 9, (18,)), positions, edges, batch, torch.tensor([0, 9, 18])]


def get_init_inputs():
    return [64, 3]
