"""MetNet: satellite pictures of the last hour, a convolutional GRU and axial attention; the weather
at one lead time."""

import torch
from metnet import MetNet


class Model(torch.nn.Module):
    def __init__(self, channels, steps):
        super().__init__()
        self.net = MetNet(
            input_channels=channels,
            sat_channels=channels,
            input_size=16,
            output_channels=6,
            hidden_dim=32,
            num_att_layers=2,
            num_att_heads=4,
            forecast_steps=steps,
        )

    def forward(self, frames):
        return self.net(frames, 2)


def get_inputs():
    return [torch.randn(1, 4, 6, 64, 64)]


def get_init_inputs():
    return [6, 8]
