"""EGNN with edges by adjacency and a global linear attention: 24 atoms with coordinates."""

import torch
from egnn_pytorch import EGNN_Network


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = EGNN_Network(
            num_tokens=21,
            num_positions=64,
            dim=dim,
            depth=3,
            num_nearest_neighbors=8,
            num_adj_degrees=3,
            adj_dim=4,
            norm_coors=True,
            soft_edges=True,
            coor_weights_clamp_value=2.0,
            global_linear_attn_every=2,
        )

    def forward(self, tokens, coordinates, mask):
        index = torch.arange(tokens.shape[1], device=tokens.device)
        chain = (index[:, None] - index[None, :]).abs() == 1
        return self.net(tokens, coordinates, adj_mat=chain, mask=mask)


def get_inputs():
    mask = torch.ones(2, 24).bool()
    mask[1, 20:] = False
    return [torch.randint(0, 21, (2, 24)), torch.randn(2, 24, 3), mask]


def get_init_inputs():
    return [32]
