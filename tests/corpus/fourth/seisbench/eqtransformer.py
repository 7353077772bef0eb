"""EQTransformer of SeisBench: convolutions, residual blocks, bidirectional LSTMs and attention find
an earthquake and the arrivals of its P and S waves."""

import torch
from seisbench.models import EQTransformer


class Model(torch.nn.Module):
    def __init__(self, samples):
        super().__init__()
        self.net = EQTransformer(in_channels=3, in_samples=samples, phases="PS", lstm_blocks=3)

    def forward(self, trace):
        return self.net(trace)


def get_inputs():
    return [torch.randn(2, 3, 6000)]


def get_init_inputs():
    return [6000]
