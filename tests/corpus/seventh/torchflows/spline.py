"""Coupling rational-quadratic spline flow of torchflows: latents of data, and back again."""

import torch
from torchflows.bijections.finite.autoregressive.architectures import CouplingRQNSF
from torchflows.flows import Flow


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.model = Flow(CouplingRQNSF(features, n_layers=3))

    def forward(self, x):
        latent, log_det = self.model.bijection.forward(x)
        back, _ = self.model.bijection.inverse(latent)
        return latent, log_det, back


def get_inputs():
    return [torch.randn(64, 12)]


def get_init_inputs():
    return [12]
