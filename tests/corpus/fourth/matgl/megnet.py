"""MEGNet: edges, atoms and a global state update in turn, softplus layers, Set2Set readout over
atoms and edges; one charge-like state per graph."""

import torch
from matgl.models import MEGNet
from torch_geometric.data import Data


class Model(torch.nn.Module):
    def __init__(self, blocks, width):
        super().__init__()
        self.net = MEGNet(
            element_types=("H", "C", "N", "O", "Si"),
            nblocks=blocks,
            dim_state_embedding=width,
            cutoff=4.0,
        )

    def forward(self, positions, species, edges, state):
        graph = Data(
            pos=positions,
            node_type=species,
            edge_index=edges,
            pbc_offshift=positions.new_zeros(edges.shape[1], 3),
            pbc_offset=positions.new_zeros(edges.shape[1], 3),
            num_nodes=positions.shape[0],
        )
        return self.net(graph, state)


def get_inputs():
    pairs = torch.tensor([(i, j) for i in range(10) for j in range(10) if i != j]).T
    return [torch.rand(10, 3) * 2.5, torch.randint(5, (10,)), pairs, torch.randn(1, 2)]


def get_init_inputs():
    return [3, 2]
