"""E(n)-equivariant transformer over molecules: neighbours within an adjacency of two degrees,
relative positions, edge tokens; features and moved coordinates."""

import torch
from en_transformer import EnTransformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = EnTransformer(
            dim=dim,
            depth=depth,
            num_tokens=21,
            dim_head=32,
            heads=4,
            num_edge_tokens=4,
            edge_dim=8,
            neighbors=8,
            num_adj_degrees=2,
            adj_dim=8,
            rel_pos_emb=True,
        )

    def forward(self, tokens, coordinates, bonds, mask):
        chain = torch.arange(tokens.shape[1])
        near = (chain[:, None] - chain[None]).abs() <= 1
        return self.net(tokens, coordinates, edges=bonds, mask=mask, adj_mat=near)


def get_inputs():
    mask = torch.ones(2, 24, dtype=torch.bool)
    mask[1, 20:] = False
    return [
        torch.randint(0, 21, (2, 24)),
        torch.randn(2, 24, 3),
        torch.randint(0, 4, (2, 24, 24)),
        mask,
    ]


def get_init_inputs():
    return [64, 4]
