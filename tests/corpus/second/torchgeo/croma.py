"""CROMA: radar and optical images in encoders with a two-dimensional ALiBi bias, joined by
cross- attention."""

import torch
from torchgeo.models import CROMA


class Model(torch.nn.Module):
    def __init__(self, dim, depth, heads):
        super().__init__()
        self.net = CROMA(
            encoder_dim=dim, encoder_depth=depth, num_heads=heads, patch_size=8, image_size=48
        )

    def forward(self, radar, optical):
        return self.net(x_sar=radar, x_optical=optical)


def get_inputs():
    return [torch.randn(1, 2, 48, 48), torch.randn(1, 12, 48, 48)]


def get_init_inputs():
    return [128, 4, 16]
