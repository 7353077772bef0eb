"""torch_geometric's DeepGCNLayer around GENConv: softmax aggregation with a learned
temperature, res+ blocks."""

import torch
from torch_geometric.nn import DeepGCNLayer, GENConv


class Model(torch.nn.Module):
    def __init__(self, hidden, depth):
        super().__init__()
        self.nodes = torch.nn.Linear(16, hidden)
        self.edges = torch.nn.Linear(8, hidden)
        self.layers = torch.nn.ModuleList()
        for _ in range(depth):
            conv = GENConv(
                hidden, hidden, aggr="softmax", t=1.0, learn_t=True, num_layers=2, norm="layer"
            )
            self.layers.append(
                DeepGCNLayer(
                    conv, torch.nn.LayerNorm(hidden), torch.nn.ReLU(), block="res+", dropout=0.1
                )
            )
        self.head = torch.nn.Linear(hidden, 12)

    def forward(self, x, edge_index, edge_attr):
        x, edge_attr = self.nodes(x), self.edges(edge_attr)
        x = self.layers[0].conv(x, edge_index, edge_attr)
        for layer in self.layers[1:]:
            x = layer(x, edge_index, edge_attr)
        return self.head(self.layers[0].act(self.layers[0].norm(x)))


def get_inputs():
    return [torch.randn(150, 16), torch.randint(0, 150, (2, 700)), torch.randn(700, 8)]


def get_init_inputs():
    return [48, 5]
