"""UniGAT: attention of the hyperedges around each vertex of a hypergraph, with several heads."""

import random

import dhg
import torch


class Model(torch.nn.Module):
    def __init__(self, vertices):
        super().__init__()
        choose = random.Random(1)
        edges = [choose.sample(range(vertices), choose.randint(2, 6)) for _ in range(120)]
        self.graph = dhg.Hypergraph(vertices, edges)
        self.net = dhg.models.UniGAT(48, 16, 7, num_heads=4)

    def forward(self, x):
        return self.net(x, self.graph)


def get_inputs():
    return [torch.randn(160, 48)]


def get_init_inputs():
    return [160]
