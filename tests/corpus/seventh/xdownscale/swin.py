"""SwinIR of xdownscale: a coarse map of a climate variable, sharpened by residual Swin blocks."""

import torch
from xdownscale.swinir import SwinIR


class Model(torch.nn.Module):
    def __init__(self, side, width):
        super().__init__()
        self.model = SwinIR(
            img_size=side,
            in_chans=1,
            embed_dim=width,
            depths=[4, 4],
            num_heads=[6, 6],
            window_size=8,
            mlp_ratio=2.0,
        )

    def forward(self, field):
        return self.model(field)


def get_inputs():
    return [torch.randn(1, 1, 64, 64)]


def get_init_inputs():
    return [64, 60]
