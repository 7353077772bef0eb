"""L-GATr-slim: Lorentz-equivariant attention on four-vectors and scalars, for jet tagging."""

import torch
from lgatr import LGATrSlim


class Model(torch.nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.net = LGATrSlim(
            num_blocks=blocks,
            in_v_channels=1,
            out_v_channels=1,
            hidden_v_channels=32,
            in_s_channels=3,
            out_s_channels=1,
            hidden_s_channels=96,
            num_heads=8,
        )

    def forward(self, momenta, features):
        vectors, scalars = self.net(momenta[:, :, None, :], features)
        return vectors, scalars.mean(1)


def get_inputs():
    return [torch.randn(4, 40, 4), torch.randn(4, 40, 3)]


def get_init_inputs():
    return [6]
