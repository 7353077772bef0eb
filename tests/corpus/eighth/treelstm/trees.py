"""Child-sum TreeLSTM of pytorch-tree-lstm on a batch of two trees."""

import torch
from torch import nn
from treelstm import TreeLSTM


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.model = TreeLSTM(features, hidden)

    def forward(self, features, node_order, adjacency, edge_order):
        return self.model(features, node_order, adjacency, edge_order)


def get_inputs():
    parents = torch.tensor([0, 0, 1, 1, 2, 2, 7, 7, 8])
    children = [*torch.arange(1, 7).tolist(), 8, 9, 10]
    edges = torch.stack([parents, torch.tensor(children)], 1)
    node_order = torch.tensor([3, 2, 1, 0, 0, 0, 0, 2, 1, 0, 0])
    return [torch.randn(11, 64), node_order, edges, node_order[parents]]


def get_init_inputs():
    return [64, 128]
