"""SSSNET, which clusters the nodes of a graph with positive and negative edges."""

import torch
from torch import nn
from torch_geometric_signed_directed.nn.signed import SSSNET_node_clustering


class Model(nn.Module):
    def __init__(self, features, hidden, clusters):
        super().__init__()
        self.model = SSSNET_node_clustering(
            nfeat=features,
            hidden=hidden,
            nclass=clusters,
            dropout=0.5,
            hop=2,
            fill_value=0.5,
            directed=True,
        )

    def forward(self, positive, positive_weights, negative, negative_weights, x):
        return self.model(positive, positive_weights, negative, negative_weights, x)


def get_inputs():
    return [
        torch.randint(0, 80, (2, 400)),
        torch.rand(400),
        torch.randint(0, 80, (2, 200)),
        torch.rand(200),
        torch.randn(80, 20),
    ]


def get_init_inputs():
    return [20, 32, 5]
