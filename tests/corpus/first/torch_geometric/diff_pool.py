"""torch_geometric's DMoNPooling and dense_mincut_pool: dense graphs made coarser twice."""

import torch
from torch_geometric.nn import DenseGraphConv, DMoNPooling, GCNConv, dense_mincut_pool
from torch_geometric.utils import to_dense_adj, to_dense_batch


class Model(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first = GCNConv(features, hidden)
        self.assign = torch.nn.Linear(hidden, 12)
        self.second = DenseGraphConv(hidden, hidden)
        self.pool = DMoNPooling([hidden, hidden], 4)
        self.third = DenseGraphConv(hidden, hidden)
        self.head = torch.nn.Linear(hidden, classes)

    def forward(self, x, edge_index):
        graphs = torch.arange(2).repeat_interleave(30)
        x = self.first(x, edge_index).relu()
        x, mask = to_dense_batch(x, graphs, max_num_nodes=30, batch_size=2)
        adj = to_dense_adj(edge_index, graphs, max_num_nodes=30, batch_size=2)
        x, adj, mincut, ortho = dense_mincut_pool(x, adj, self.assign(x), mask)
        x = self.second(x, adj).relu()
        _, x, adj, spectral, _, cluster = self.pool(x, adj)
        x = self.third(x, adj).mean(1)
        return self.head(x).log_softmax(-1), mincut + ortho + spectral + cluster


def get_inputs():
    return [
        torch.randn(60, 16),
        torch.cat([torch.randint(0, 30, (2, 90)), torch.randint(30, 60, (2, 90))], 1),
    ]


def get_init_inputs():
    return [16, 32, 5]
