"""Graph WaveNet: gated dilated convolutions in time, diffusion over a sensor graph and over a
learned one."""

import torch
from tsl.nn.models.stgn.graph_wavenet_model import GraphWaveNetModel


class Model(torch.nn.Module):
    def __init__(self, nodes, hidden):
        super().__init__()
        self.net = GraphWaveNetModel(
            1, 1, 6, exog_size=2, hidden_size=hidden, ff_size=64, n_layers=4, n_nodes=nodes
        )

    def forward(self, readings, edges, weights, calendar):
        return self.net(readings, edges, weights, calendar)


def get_inputs():
    edges = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    return [
        torch.randn(2, 12, 12, 1),
        torch.cat([edges, edges.flip(0)], dim=1),
        torch.rand(24),
        torch.randn(2, 12, 2),
    ]


def get_init_inputs():
    return [12, 16]
