"""Capsule network: primary capsules from convolutions, three rounds of routing by agreement,
a decoder on the winning capsule."""

import torch
from labml_nn.capsule_networks.mnist import MNISTCapsuleNetworkModel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = MNISTCapsuleNetworkModel()

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(2, 1, 28, 28)]


def get_init_inputs():
    return []
