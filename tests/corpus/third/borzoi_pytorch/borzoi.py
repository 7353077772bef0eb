"""Borzoi: a DNA sequence to RNA-seq coverage: convolution tower, attention, U-Net decoder.

The attention adds relative positions whose basis functions the package has in a table; this one is
half as wide as the published one and reads a shorter sequence.
"""

import torch
from borzoi_pytorch import Borzoi
from borzoi_pytorch.config_borzoi import BorzoiConfig


class Model(torch.nn.Module):
    def __init__(self, dim, depth, bins):
        super().__init__()
        self.net = Borzoi(
            BorzoiConfig(
                dim=dim,
                depth=depth,
                heads=4,
                attn_dim_key=32,
                attn_dim_value=96,
                bins_to_return=bins,
            )
        )

    def forward(self, sequence):
        return self.net(sequence)


def get_inputs():
    bases = torch.randint(0, 4, (1, 524288 // 32))
    return [torch.nn.functional.one_hot(bases, 4).float().transpose(1, 2)]


def get_init_inputs():
    return [768, 4, 256]
