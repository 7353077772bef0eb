"""A transformer layer by e3nn: queries, keys by tensor products with spherical harmonics, a
softmax over each node's edges."""

import torch
from e3nn import o3
from e3nn.nn import FullyConnectedNet, Gate
from e3nn.o3 import FullyConnectedTensorProduct, Linear, spherical_harmonics


class Attention(torch.nn.Module):
    def __init__(self, irreps, queries, angles):
        super().__init__()
        self.query = Linear(irreps, queries)
        self.key = FullyConnectedTensorProduct(irreps, angles, queries, shared_weights=False)
        self.value = FullyConnectedTensorProduct(irreps, angles, irreps, shared_weights=False)
        self.key_weights = FullyConnectedNet(
            [8, 16, self.key.weight_numel], torch.nn.functional.silu
        )
        self.value_weights = FullyConnectedNet(
            [8, 16, self.value.weight_numel], torch.nn.functional.silu
        )
        self.dot = FullyConnectedTensorProduct(queries, queries, "0e")

    def forward(self, x, source, target, angles, lengths):
        keys = self.key(x[source], angles, self.key_weights(lengths))
        values = self.value(x[source], angles, self.value_weights(lengths))
        scores = self.dot(self.query(x)[target], keys).clamp(-8, 8).exp()
        total = x.new_zeros(x.shape[0], 1).index_add(0, target, scores)
        return x.new_zeros(x.shape).index_add(0, target, scores / (total[target] + 1e-6) * values)


class Model(torch.nn.Module):
    def __init__(self, irreps, layers):
        super().__init__()
        self.gate = Gate("8x0e", [torch.tanh], "4x0e", [torch.sigmoid], "4x1o")
        self.embed = Linear("5x0e", irreps)
        self.layers = torch.nn.ModuleList(
            Attention(irreps, "4x0e + 2x1o", "0e + 1o") for _ in range(layers)
        )
        self.spread = torch.nn.ModuleList(
            Linear(irreps, self.gate.irreps_in) for _ in range(layers)
        )
        self.head = Linear(o3.Irreps(irreps), "2x0e + 1x1o")
        self.radii = torch.nn.Buffer(torch.linspace(0, 3, 8))

    def forward(self, features, positions, source, target):
        vectors = positions[target] - positions[source]
        angles = spherical_harmonics("0e + 1o", vectors, True, normalization="component")
        lengths = (-((vectors.norm(dim=1)[:, None] - self.radii) ** 2)).exp()
        x = self.embed(features)
        for layer, spread in zip(self.layers, self.spread, strict=True):
            x = x + self.gate(spread(layer(x, source, target, angles, lengths)))
        return self.head(x)


def get_inputs():
    source = torch.randint(0, 16, (80,))
    return [
        torch.randn(16, 5),
        torch.randn(16, 3),
        source,
        (source + torch.randint(1, 16, (80,))) % 16,
    ]


def get_init_inputs():
    return ["8x0e + 4x1o", 2]
