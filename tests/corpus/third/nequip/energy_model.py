"""NequIP: energies of atoms by equivariant convolutions with learned radial weights, no forces.

Three layers of tensor products up to l = 2; positions, types and the list of neighbours are inputs.
"""

import torch
from nequip.data import AtomicDataDict
from nequip.model import NequIPGNNModel
from nequip.utils.global_state import set_global_state


class Model(torch.nn.Module):
    def __init__(self, layers, features):
        super().__init__()
        set_global_state()
        self.net = NequIPGNNModel(
            seed=0,
            model_dtype="float32",
            r_max=4.0,
            type_names=["H", "C", "O"],
            num_layers=layers,
            l_max=2,
            parity=False,
            num_features=features,
            avg_num_neighbors=12.0,
            do_derivatives=False,
        )

    def forward(self, positions, types, edges):
        result = self.net(
            {
                AtomicDataDict.POSITIONS_KEY: positions,
                AtomicDataDict.ATOM_TYPE_KEY: types,
                AtomicDataDict.EDGE_INDEX_KEY: edges,
            }
        )
        return result[AtomicDataDict.TOTAL_ENERGY_KEY], result[AtomicDataDict.PER_ATOM_ENERGY_KEY]


def get_inputs():
    positions = torch.rand(32, 3, dtype=torch.float64) * 6
    near = torch.cdist(positions, positions) < 4.0
    near.fill_diagonal_(False)
    return [positions, torch.randint(0, 3, (32,)), near.nonzero().t().contiguous()]


def get_init_inputs():
    return [3, 32]
