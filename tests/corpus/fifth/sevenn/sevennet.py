"""SevenNet: equivariant message passing on atoms, energy and forces by the edges' gradients."""

import sevenn._keys as KEY
import torch
from sevenn._const import DEFAULT_E3_EQUIVARIANT_MODEL_CONFIG
from sevenn.atom_graph_data import AtomGraphData
from sevenn.model_build import build_E3_equivariant_model


class Model(torch.nn.Module):
    def __init__(self, multiplicity, layers):
        super().__init__()
        config = dict(DEFAULT_E3_EQUIVARIANT_MODEL_CONFIG)
        config.update(
            {
                KEY.LMAX: 2,
                KEY.NODE_FEATURE_MULTIPLICITY: multiplicity,
                KEY.NUM_CONVOLUTION: layers,
                KEY.NUM_SPECIES: 4,
                KEY.TYPE_MAP: {1: 0, 6: 1, 7: 2, 8: 3},
                KEY.CONV_DENOMINATOR: 5.0,
                KEY.SHIFT: 0.0,
                KEY.SCALE: 1.0,
                KEY.USE_MODAL_WISE_SHIFT: False,
                KEY.USE_MODAL_WISE_SCALE: False,
            }
        )
        self.net = build_E3_equivariant_model(config)
        self.net.set_is_batch_data(False)

    def forward(self, positions, numbers, edges):
        with torch.enable_grad():
            vectors = positions[edges[1]] - positions[edges[0]]
            data = AtomGraphData(
                x=numbers, edge_index=edges, pos=positions, edge_vec=vectors.requires_grad_()
            ).to_dict()
            data[KEY.NUM_ATOMS] = torch.tensor(len(positions))
            data[KEY.CELL_VOLUME] = torch.tensor(500.0)
            data[KEY.ATOMIC_NUMBERS] = numbers
            result = self.net(data)
        return result[KEY.PRED_TOTAL_ENERGY], result[KEY.PRED_FORCE], result[KEY.PRED_STRESS]


def get_inputs():
    positions = torch.rand(14, 3) * 6
    near = (torch.cdist(positions, positions) < 4.5) & ~torch.eye(14, dtype=torch.bool)
    kinds = torch.tensor([1, 6, 7, 8])
    return [positions, kinds[torch.randint(0, 4, (14,))], near.nonzero().T.contiguous()]


def get_init_inputs():
    return [16, 3]
