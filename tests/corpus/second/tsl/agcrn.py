"""AGCRN: a recurrence whose weights and graph come from embeddings of the nodes."""

import torch
from tsl.nn.models.stgn.agcrn_model import AGCRNModel


class Model(torch.nn.Module):
    def __init__(self, nodes, hidden, layers):
        super().__init__()
        self.net = AGCRNModel(
            1, 1, 6, n_nodes=nodes, hidden_size=hidden, emb_size=8, n_layers=layers
        )

    def forward(self, readings):
        return self.net(readings)


def get_inputs():
    return [torch.randn(2, 8, 10, 1)]


def get_init_inputs():
    return [10, 24, 2]
