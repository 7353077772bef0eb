"""DOMINANT of PyGOD: a graph autoencoder that rebuilds attributes and edges; outlier scores."""

import torch
from pygod.nn import DOMINANTBase
from pygod.nn.functional import double_recon_loss
from torch_geometric.utils import to_dense_adj


class Model(torch.nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.model = DOMINANTBase(in_dim=features, hid_dim=width, num_layers=4)

    def forward(self, x, edges):
        adjacency = to_dense_adj(edges, max_num_nodes=x.shape[0])[0]
        attributes, structure = self.model(x, edges)
        return double_recon_loss(x, attributes, adjacency, structure, weight=0.5)


def get_inputs():
    return [torch.randn(300, 64), torch.randint(0, 300, (2, 1500))]


def get_init_inputs():
    return [64, 64]
