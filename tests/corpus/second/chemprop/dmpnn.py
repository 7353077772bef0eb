"""Chemprop's directed message passing over the bonds of three molecules, then a feed-forward
network."""

import torch
from chemprop import nn
from chemprop.data import BatchMolGraph
from chemprop.models import MPNN


class Model(torch.nn.Module):
    def __init__(self, hidden, depth):
        super().__init__()
        self.net = MPNN(
            nn.BondMessagePassing(d_v=40, d_e=14, d_h=hidden, depth=depth),
            nn.NormAggregation(),
            nn.RegressionFFN(n_tasks=2, input_dim=hidden),
            batch_norm=True,
        )

    def forward(self, atoms, bonds, edges, reverse, molecule):
        graph = BatchMolGraph.__new__(BatchMolGraph)
        graph.V, graph.E, graph.edge_index, graph.rev_edge_index, graph.batch = (
            atoms,
            bonds,
            edges,
            reverse,
            molecule,
        )
        return self.net(graph)


def get_inputs():
    source = torch.tensor([i for ring in (range(0, 6), range(6, 11), range(11, 18)) for i in ring])
    target = torch.tensor(
        [i + 1 if i not in (5, 10, 17) else {5: 0, 10: 6, 17: 11}[i] for i in source.tolist()]
    )
    edges = torch.stack(
        [torch.stack([source, target], 1).reshape(-1), torch.stack([target, source], 1).reshape(-1)]
    )
    molecule = torch.tensor([0] * 6 + [1] * 5 + [2] * 7)
    return [torch.randn(18, 40), torch.randn(36, 14), edges, torch.arange(36) ^ 1, molecule]


def get_init_inputs():
    return [64, 3]
