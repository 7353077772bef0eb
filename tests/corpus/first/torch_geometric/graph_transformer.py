"""torch_geometric's GPSConv over ResGatedGraphConv: a graph transformer with sparse and dense
attention for two graphs."""

import torch
from torch_geometric.nn import GPSConv, ResGatedGraphConv, global_add_pool


class Model(torch.nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        self.embed = torch.nn.Embedding(28, channels)
        self.edges = torch.nn.Embedding(4, channels)
        self.blocks = torch.nn.ModuleList(
            GPSConv(channels, ResGatedGraphConv(channels, channels, edge_dim=channels), heads=4)
            for _ in range(layers)
        )
        self.head = torch.nn.Linear(channels, 1)

    def forward(self, kinds, edge_index, bonds):
        graphs = torch.arange(2).repeat_interleave(kinds.shape[0] // 2)
        x, bonds = self.embed(kinds), self.edges(bonds)
        for block in self.blocks:
            x = block(x, edge_index, graphs, edge_attr=bonds)
        return self.head(global_add_pool(x, graphs, 2))


def get_inputs():
    edges = torch.cat([torch.randint(0, 20, (2, 60)), torch.randint(20, 40, (2, 60))], 1)
    return [torch.randint(0, 28, (40,)), edges, torch.randint(0, 4, (120,))]


def get_init_inputs():
    return [64, 3]
