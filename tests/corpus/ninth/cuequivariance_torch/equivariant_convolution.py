"""Equivariant message passing on points by tensor products of cuequivariance_torch."""

import cuequivariance as cue
import cuequivariance_torch as cuet
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.irreps = cue.Irreps("O3", f"{width}x0e + {width}x1o")
        filters = cue.Irreps("O3", "0e + 1o + 2e")
        self.embed = nn.Embedding(10, width)
        self.harmonics = cuet.SphericalHarmonics([0, 1, 2], normalize=True)
        self.products = nn.ModuleList()
        self.radials = nn.ModuleList()
        self.linears = nn.ModuleList()
        for _ in range(layers):
            product = cuet.ChannelWiseTensorProduct(
                self.irreps,
                filters,
                [ir for _, ir in self.irreps],
                layout=cue.ir_mul,
                shared_weights=False,
                method="naive",
            )
            self.products.append(product)
            self.radials.append(
                nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, product.weight_numel))
            )
            self.linears.append(
                cuet.Linear(product.irreps_out, self.irreps, layout=cue.ir_mul, method="naive")
            )
        self.width = width

    def forward(self, species, positions, edges):
        sender, receiver = edges
        vector = positions[receiver] - positions[sender]
        length = vector.norm(dim=-1, keepdim=True)
        radial = torch.exp(-4 * (length - torch.linspace(0.5, 4, 8)) ** 2)
        harmonics = self.harmonics(vector)
        scalars = self.embed(species)
        x = torch.cat([scalars, scalars.new_zeros(len(species), 3 * self.width)], 1)
        for product, weights, linear in zip(
            self.products, self.radials, self.linears, strict=False
        ):
            message = product(x[sender], harmonics, weights(radial))
            message = torch.zeros(len(x), message.shape[1]).index_add(0, receiver, message)
            x = x + linear(message)
        return x


def get_inputs():
    positions = 3 * torch.rand(24, 3)
    distance = torch.cdist(positions, positions) + 10 * torch.eye(24)
    return [torch.randint(0, 10, (24,)), positions, (distance < 2).nonzero().T.contiguous()]


def get_init_inputs():
    return [16, 2]
