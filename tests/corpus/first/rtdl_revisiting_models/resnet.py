"""rtdl-revisiting-models' ResNet of a table: blocks with batch norms and dropouts."""

import torch
from rtdl_revisiting_models import ResNet


class Model(torch.nn.Module):
    def __init__(self, blocks, width):
        super().__init__()
        self.net = ResNet(
            d_in=30,
            d_out=4,
            n_blocks=blocks,
            d_block=width,
            d_hidden_multiplier=2.0,
            dropout1=0.2,
            dropout2=0.1,
        )

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    return [torch.randn(64, 30)]


def get_init_inputs():
    return [4, 96]
