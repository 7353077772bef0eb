"""HGNN+ on a hypergraph: vertices tell hyperedges, hyperedges tell vertices, twice."""

import random

import dhg
import torch


class Model(torch.nn.Module):
    def __init__(self, vertices):
        super().__init__()
        choose = random.Random(0)
        edges = [choose.sample(range(vertices), choose.randint(2, 8)) for _ in range(150)]
        self.graph = dhg.Hypergraph(vertices, edges)
        self.net = dhg.models.HGNNP(64, 128, 10, use_bn=True)

    def forward(self, x):
        return self.net(x, self.graph)


def get_inputs():
    return [torch.randn(200, 64)]


def get_init_inputs():
    return [200]
