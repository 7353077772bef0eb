"""Graph transformer with edge features and gated residuals, from graph_transformer_pytorch."""

import torch
from graph_transformer_pytorch import GraphTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth, edge_dim):
        super().__init__()
        self.model = GraphTransformer(
            dim=dim,
            depth=depth,
            edge_dim=edge_dim,
            heads=8,
            with_feedforwards=True,
            gated_residual=True,
            rel_pos_emb=True,
        )

    def forward(self, nodes, edges, mask):
        return self.model(nodes, edges, mask=mask)


def get_inputs():
    mask = torch.ones(1, 96, dtype=torch.bool)
    mask[:, 90:] = False
    return [torch.randn(1, 96, 128), torch.randn(1, 96, 96, 64), mask]


def get_init_inputs():
    return [128, 4, 64]
