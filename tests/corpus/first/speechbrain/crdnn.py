"""speechbrain's CRDNN: convolutions, light GRUs in both directions, dense layers."""

import torch
from speechbrain.lobes.models.CRDNN import CRDNN


class Model(torch.nn.Module):
    def __init__(self, neurons):
        super().__init__()
        self.net = CRDNN(
            input_shape=[None, None, 40],
            cnn_channels=[16, 32],
            rnn_layers=2,
            rnn_neurons=neurons,
            dnn_neurons=neurons,
        )

    def forward(self, frames):
        return self.net(frames)


def get_inputs():
    return [torch.randn(2, 20, 40)]


def get_init_inputs():
    return [64]
