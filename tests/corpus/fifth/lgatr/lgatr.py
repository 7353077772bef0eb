"""L-GATr: a transformer on multivectors of the spacetime algebra, equivariant to Lorentz boosts."""

import torch
from lgatr import LGATr
from lgatr.interface import embed_vector, extract_scalar


class Model(torch.nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.net = LGATr(
            num_blocks=blocks,
            in_mv_channels=1,
            out_mv_channels=1,
            hidden_mv_channels=16,
            in_s_channels=2,
            out_s_channels=1,
            hidden_s_channels=32,
            attention={"num_heads": 8},
            mlp={},
        )

    def forward(self, momenta, features):
        multivectors = embed_vector(momenta)[:, :, None, :]
        multivectors, scalars = self.net(multivectors, scalars=features)
        return extract_scalar(multivectors)[:, :, 0].mean(1), scalars.mean(1)


def get_inputs():
    return [torch.randn(4, 24, 4), torch.randn(4, 24, 2)]


def get_init_inputs():
    return [4]
