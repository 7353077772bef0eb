"""TSMixer with auxiliary series and static features, from torchtsmixer."""

import torch
from torch import nn
from torchtsmixer import TSMixerExt


class Model(nn.Module):
    def __init__(self, history, horizon):
        super().__init__()
        self.model = TSMixerExt(
            sequence_length=history,
            prediction_length=horizon,
            input_channels=7,
            extra_channels=4,
            hidden_channels=32,
            static_channels=3,
            num_blocks=4,
            output_channels=7,
        )

    def forward(self, past, extra_past, extra_future, static):
        return self.model(past, extra_past, extra_future, static)


def get_inputs():
    return [
        torch.randn(8, 96, 7),
        torch.randn(8, 96, 4),
        torch.randn(8, 24, 4),
        torch.randn(8, 3),
    ]


def get_init_inputs():
    return [96, 24]
