"""torchhyper: a hypernetwork that predicts the weights of a small convolutional classifier."""

import torch
from torch import nn
from torch.func import functional_call
from torchhyper.model.hypernetwork_architectures import HyperNetwork


class Model(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 25, 10),
        )
        self.hyper = HyperNetwork(size, hidden, self.net, use_outer_net=True)

    def forward(self, x, img):
        return functional_call(self.net, self.hyper(x), (img,))


def get_inputs():
    return [torch.randn(32, 64), torch.randn(4, 1, 24, 24)]


def get_init_inputs():
    return [64, [128, 64]]
