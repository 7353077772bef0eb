"""UniGCN of TopoModelX on a hypergraph: messages from nodes to hyperedges and back."""

import torch
from topomodelx.nn.hypergraph.unigcn import UniGCN


class Model(torch.nn.Module):
    def __init__(self, features, width, classes):
        super().__init__()
        self.model = UniGCN(in_channels=features, hidden_channels=width, n_layers=2)
        self.head = torch.nn.Linear(width, classes)

    def forward(self, x, incidence):
        nodes, edges = self.model(x, incidence.to_sparse())
        return self.head(nodes), self.head(edges.amax(dim=0))


def get_inputs():
    return [torch.randn(200, 64), (torch.rand(200, 50) < 0.05).float()]


def get_init_inputs():
    return [64, 32, 7]
