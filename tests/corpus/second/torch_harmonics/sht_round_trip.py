"""A filter between a spherical harmonic transform of a vector field and its inverse."""

import torch
import torch_harmonics


class Model(torch.nn.Module):
    def __init__(self, nlat, nlon):
        super().__init__()
        self.forward_transform = torch_harmonics.RealVectorSHT(nlat, nlon, grid="legendre-gauss")
        self.inverse_transform = torch_harmonics.InverseRealVectorSHT(
            nlat,
            nlon,
            lmax=self.forward_transform.lmax,
            mmax=self.forward_transform.mmax,
            grid="legendre-gauss",
        )
        self.gain = torch.nn.Parameter(torch.rand(self.forward_transform.lmax, 1))

    def forward(self, wind):
        return self.inverse_transform(self.forward_transform(wind) * self.gain)


def get_inputs():
    return [torch.randn(2, 2, 32, 64)]


def get_init_inputs():
    return [32, 64]
