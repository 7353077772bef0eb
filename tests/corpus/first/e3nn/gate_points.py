"""e3nn's gated network of points: tensor products with spherical harmonics along edges within a
radius."""

import torch
from e3nn.nn.models.v2106.gate_points_message_passing import MessagePassing
from e3nn.o3 import spherical_harmonics


class Model(torch.nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        irreps = ["8x0e", *[hidden] * layers, "1x0e + 1x1o"]
        self.net = MessagePassing(irreps, "1x0e", "1x0e + 1x1o + 1x2e", [10, 32], 6.0)
        self.centers = torch.nn.Buffer(torch.linspace(0, 3, 10))

    def forward(self, features, positions, source, target):
        vectors = positions[source] - positions[target]
        angles = spherical_harmonics([0, 1, 2], vectors, True, normalization="component")
        distances = (-((vectors.norm(dim=1)[:, None] - self.centers) ** 2)).exp()
        return self.net(
            features, features.new_ones(features.shape[0], 1), source, target, angles, distances
        )


def get_inputs():
    source = torch.randint(0, 20, (120,))
    return [
        torch.randn(20, 8),
        torch.randn(20, 3),
        source,
        (source + torch.randint(1, 20, (120,))) % 20,
    ]


def get_init_inputs():
    return ["8x0e + 4x0o + 4x1o + 4x1e + 2x2e", 2]
