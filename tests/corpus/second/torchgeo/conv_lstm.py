"""Two layers of ConvLSTM over 6 frames."""

import torch
from torchgeo.models import ConvLSTM


class Model(torch.nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.net = ConvLSTM(
            channels,
            hidden,
            (3, 3),
            len(hidden),
            batch_first=True,
            bias=True,
            return_all_layers=True,
        )

    def forward(self, frames):
        return self.net(frames)


def get_inputs():
    return [torch.randn(1, 6, 4, 32, 32)]


def get_init_inputs():
    return [4, [16, 24]]
