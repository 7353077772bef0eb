"""A conditional flow of rational-quadratic splines: densities and samples of the parameters."""

import torch
from glasflow import CouplingNSF


class Model(torch.nn.Module):
    def __init__(self, context):
        super().__init__()
        self.net = CouplingNSF(
            n_inputs=15,
            n_transforms=6,
            n_conditional_inputs=context,
            n_neurons=128,
            n_blocks_per_transform=2,
            linear_transform="lu",
            num_bins=8,
        )

    def forward(self, x, data, noise):
        samples, _ = self.net.inverse(noise, conditional=data)
        return self.net.log_prob(x, conditional=data), samples


def get_inputs():
    return [torch.randn(32, 15), torch.randn(32, 64), torch.randn(32, 15)]


def get_init_inputs():
    return [64]
