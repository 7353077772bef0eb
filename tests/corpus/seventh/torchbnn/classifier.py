"""A Bayesian network of torchbnn: weights sampled at each call; classes and the divergence from the
prior."""

import torch
import torchbnn as bnn
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        prior = {"prior_mu": 0, "prior_sigma": 0.1}
        self.net = nn.Sequential(
            bnn.BayesConv2d(
                in_channels=channels, out_channels=16, kernel_size=3, padding=1, **prior
            ),
            nn.ReLU(),
            nn.MaxPool2d(4),
            nn.Flatten(),
            bnn.BayesLinear(in_features=16 * 7 * 7, out_features=100, **prior),
            nn.ReLU(),
            bnn.BayesLinear(in_features=100, out_features=classes, **prior),
        )
        self.divergence = bnn.BKLLoss(reduction="mean", last_layer_only=False)

    def forward(self, image):
        return self.net(image), self.divergence(self.net)


def get_inputs():
    return [torch.randn(8, 1, 28, 28)]


def get_init_inputs():
    return [1, 10]
