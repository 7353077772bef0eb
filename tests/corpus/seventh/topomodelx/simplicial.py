"""SCN2 of TopoModelX: convolutions on nodes, edges and triangles with their Hodge Laplacians."""

import torch
from topomodelx.nn.simplicial.scn2 import SCN2


class Model(torch.nn.Module):
    def __init__(self, nodes, edges, triangles):
        super().__init__()
        self.model = SCN2(nodes, edges, triangles, n_layers=2)

    def forward(self, x0, x1, x2, b1, b2):
        down, up = b1 @ b1.T, b1.T @ b1 + b2 @ b2.T
        return self.model(x0, x1, x2, down.to_sparse(), up.to_sparse(), (b2.T @ b2).to_sparse())


def get_inputs():
    b1 = (torch.rand(40, 120) < 0.05).float()
    b2 = (torch.rand(120, 60) < 0.03).float()
    return [torch.randn(40, 16), torch.randn(120, 16), torch.randn(60, 16), b1, b2]


def get_init_inputs():
    return [16, 16, 16]
