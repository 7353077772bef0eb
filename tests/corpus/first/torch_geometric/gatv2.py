"""Three of torch_geometric's GATv2Conv with features of edges and residual connections: classes
of nodes."""

import torch
from torch_geometric.nn import GATv2Conv


class Model(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.conv1 = GATv2Conv(
            features, hidden, heads=4, edge_dim=8, residual=True, add_self_loops=False
        )
        self.conv2 = GATv2Conv(
            4 * hidden, hidden, heads=4, edge_dim=8, residual=True, add_self_loops=False
        )
        self.conv3 = GATv2Conv(
            4 * hidden, classes, heads=2, concat=False, edge_dim=8, add_self_loops=False
        )

    def forward(self, x, edge_index, edge_attr):
        x = self.conv1(x, edge_index, edge_attr).relu()
        x = self.conv2(x, edge_index, edge_attr).relu()
        return self.conv3(x, edge_index, edge_attr).log_softmax(-1)


def get_inputs():
    return [torch.randn(200, 32), torch.randint(0, 200, (2, 900)), torch.randn(900, 8)]


def get_init_inputs():
    return [32, 16, 7]
