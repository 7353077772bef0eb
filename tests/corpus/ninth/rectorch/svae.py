"""Sequential variational autoencoder for recommendation, from rectorch."""

import torch
from rectorch.nets import SVAE_net
from torch import nn


class Model(nn.Module):
    def __init__(self, items, embedding, hidden):
        super().__init__()
        self.model = SVAE_net(items, embedding, hidden, [64, 128, items], [hidden, 128, 64])

    def forward(self, history):
        return self.model(history)


def get_inputs():
    return [torch.randint(0, 1500, (1, 40))]


def get_init_inputs():
    return [1500, 128, 150]
