"""M3GNet: crystal or molecule graph with three-body interactions from spherical Bessel functions
and harmonics, gated graph convolutions, weighted readout."""

import torch
from matgl.models import M3GNet
from torch_geometric.data import Data


class Model(torch.nn.Module):
    def __init__(self, blocks, width):
        super().__init__()
        self.net = M3GNet(
            element_types=("H", "C", "N", "O", "Si"),
            nblocks=blocks,
            units=width,
            is_intensive=False,
            cutoff=5.0,
            threebody_cutoff=4.0,
        )

    def forward(self, positions, species, edges):
        graph = Data(
            pos=positions,
            node_type=species,
            edge_index=edges,
            pbc_offshift=positions.new_zeros(edges.shape[1], 3),
            pbc_offset=positions.new_zeros(edges.shape[1], 3),
            num_nodes=positions.shape[0],
        )
        return self.net(graph)


def get_inputs():
    pairs = torch.tensor([(i, j) for i in range(10) for j in range(10) if i != j]).T
    return [torch.rand(10, 3) * 2.5, torch.randint(5, (10,)), pairs]


def get_init_inputs():
    return [3, 64]
