"""SCINet: a binary tree that splits a series into its odd and even steps, three levels."""

import torch
from pypots.nn.modules.scinet import BackboneSCINet


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.backbone = BackboneSCINet(
            n_out_steps=48,
            n_in_steps=48,
            n_in_features=features,
            d_hidden=32,
            n_stacks=2,
            n_levels=3,
            n_decoder_layers=1,
            n_groups=1,
        )

    def forward(self, series):
        return self.backbone(series)


def get_inputs():
    return [torch.randn(2, 48, 8)]


def get_init_inputs():
    return [8]
