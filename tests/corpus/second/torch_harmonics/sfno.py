"""A spherical Fourier neural operator: one step of a field on a 32 by 64 grid of the sphere."""

import torch
from torch_harmonics.examples.models import SphericalFourierNeuralOperator


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.net = SphericalFourierNeuralOperator(
            img_size=(32, 64),
            grid="equiangular",
            scale_factor=2,
            embed_dim=dim,
            num_layers=layers,
            normalization_layer="instance_norm",
            pos_embed="spectral",
        )

    def forward(self, field):
        return self.net(field)


def get_inputs():
    return [torch.randn(1, 3, 32, 64)]


def get_init_inputs():
    return [32, 3]
