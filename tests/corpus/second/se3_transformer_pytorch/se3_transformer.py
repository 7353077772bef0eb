"""An SE(3)-transformer over the 8 nearest of 24 points, features of degrees 0 to 2."""

import torch
from se3_transformer_pytorch import SE3Transformer


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = SE3Transformer(
            dim=dim,
            heads=4,
            depth=2,
            dim_head=8,
            num_degrees=3,
            output_degrees=2,
            num_neighbors=8,
            reduce_dim_out=True,
        )

    def forward(self, features, coordinates, mask):
        return self.net(features, coordinates, mask)


def get_inputs():
    return [torch.randn(1, 24, 16), torch.randn(1, 24, 3), torch.ones(1, 24).bool()]


def get_init_inputs():
    return [16]
