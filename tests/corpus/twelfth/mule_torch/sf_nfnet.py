"""Slow-fast NFNet for music audio, narrower than the released model."""

import torch
from mule_torch import MuleConfig, SfNfNetF0
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = SfNfNetF0(
            MuleConfig(
                slow_stage_in=(256, 256, 256, 384),
                slow_stage_out=(128, 128, 128, 128),
                fusion_output_channels=(128, 128, 128, 256),
                slow_group_size=32,
            )
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 1, 96, 300)]


def get_init_inputs():
    return []
