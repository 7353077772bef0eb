"""MACE: energies and forces of molecules from equivariant messages and symmetric contractions of
body order four; forces by differentiating the energy."""

import numpy as np
import torch
from e3nn import o3
from mace.modules import interaction_classes
from mace.modules.models import ScaleShiftMACE


class Model(torch.nn.Module):
    def __init__(self, channels, degree, correlation):
        super().__init__()
        self.net = ScaleShiftMACE(
            r_max=5.0,
            num_bessel=8,
            num_polynomial_cutoff=5,
            max_ell=degree,
            interaction_cls=interaction_classes["RealAgnosticResidualInteractionBlock"],
            interaction_cls_first=interaction_classes["RealAgnosticInteractionBlock"],
            num_interactions=2,
            num_elements=4,
            hidden_irreps=o3.Irreps(f"{channels}x0e + {channels}x1o"),
            MLP_irreps=o3.Irreps("16x0e"),
            atomic_energies=np.array([-13.6, -1029.0, -1484.0, -2042.0]),
            avg_num_neighbors=8.0,
            atomic_numbers=[1, 6, 7, 8],
            correlation=correlation,
            gate=torch.nn.functional.silu,
            atomic_inter_scale=0.8,
            atomic_inter_shift=0.1,
        )

    def forward(self, positions, species, edges):
        atoms = positions.shape[0]
        with torch.enable_grad():
            out = self.net(
                {
                    "positions": positions,
                    "node_attrs": torch.nn.functional.one_hot(species, 4).to(positions),
                    "edge_index": edges,
                    "shifts": positions.new_zeros(edges.shape[1], 3),
                    "unit_shifts": positions.new_zeros(edges.shape[1], 3),
                    "cell": torch.eye(3).to(positions) * 50,
                    "batch": torch.arange(atoms) // (atoms // 2),
                    "ptr": torch.tensor([0, atoms // 2, atoms]),
                    "head": torch.zeros(2, dtype=torch.long),
                },
                compute_force=True,
            )
        return out["energy"].detach(), out["forces"].detach()


def get_inputs():
    pairs = torch.tensor([(i, j) for i in range(9) for j in range(9) if i != j]).T
    return [
        torch.randn(18, 3) * 1.5,
        torch.randint(4, (18,)),
        torch.cat([pairs, pairs + 9], dim=1),
    ]


def get_init_inputs():
    return [32, 3, 3]
