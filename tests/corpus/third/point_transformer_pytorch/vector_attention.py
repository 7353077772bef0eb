"""Point Transformer: three layers of vector attention with learned relative positions over the
nearest neighbours of each point, masked points, and scores per point."""

import torch
from point_transformer_pytorch import MultiheadPointTransformerLayer, PointTransformerLayer


class Model(torch.nn.Module):
    def __init__(self, dim, neighbors):
        super().__init__()
        self.enter = torch.nn.Linear(6, dim)
        self.layers = torch.nn.ModuleList(
            [
                PointTransformerLayer(dim=dim, num_neighbors=neighbors),
                PointTransformerLayer(dim=dim, num_neighbors=neighbors),
                MultiheadPointTransformerLayer(dim=dim, heads=4, dim_head=32, num_neighbors=8),
            ]
        )
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(dim) for _ in self.layers)
        self.leave = torch.nn.Linear(dim, 13)

    def forward(self, features, position, mask):
        x = self.enter(features)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x), position, mask=mask)
        return self.leave(x)


def get_inputs():
    mask = torch.ones(1, 256).bool()
    mask[:, 240:] = False
    return [torch.randn(1, 256, 6), torch.randn(1, 256, 3), mask]


def get_init_inputs():
    return [96, 16]
