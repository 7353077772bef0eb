"""A channel strip: a network sets a six-band equaliser and a compressor for each recording."""

import torch
from dasp_pytorch import Compressor, ParametricEQ


class Model(torch.nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.equaliser = ParametricEQ(rate)
        self.compressor = Compressor(rate)
        size = self.equaliser.num_params + self.compressor.num_params
        self.net = torch.nn.Sequential(
            torch.nn.Conv1d(1, 32, 64, stride=32),
            torch.nn.PReLU(),
            torch.nn.Conv1d(32, 64, 16, stride=8),
            torch.nn.PReLU(),
            torch.nn.AdaptiveAvgPool1d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(64, size),
            torch.nn.Sigmoid(),
        )

    def forward(self, audio):
        values = self.net(audio)
        split = self.equaliser.num_params
        audio = self.equaliser.process_normalized(audio, values[:, :split])
        return self.compressor.process_normalized(audio, values[:, split:])


def get_inputs():
    return [0.1 * torch.randn(2, 1, 22050)]


def get_init_inputs():
    return [22050]
