"""Points on a product of a sphere, a hyperboloid and flat space: geodesics and distances."""

import geoopt
import torch


class Model(torch.nn.Module):
    def __init__(self, items, features):
        super().__init__()
        self.parts = [
            (geoopt.SphereProjection(), 8),
            (geoopt.PoincareBall(), 8),
            (geoopt.Euclidean(1), 8),
        ]
        self.space = geoopt.ProductManifold(*self.parts)
        points = self.space.random(items, 24)
        self.items = geoopt.ManifoldParameter(points, manifold=self.space)
        self.encode = torch.nn.Sequential(
            torch.nn.Linear(features, 128), torch.nn.SiLU(), torch.nn.Linear(128, 24)
        )

    def forward(self, x):
        start = self.items.mean(0, keepdim=True).expand(x.shape[0], 24)
        start = self.space.projx(0.1 * start)
        tangent = self.space.proju(start, 0.1 * self.encode(x))
        users = self.space.expmap(start, tangent)
        distances = self.space.dist(users[:, None, :], self.items[None])
        return users, -(distances**2), self.space.component_inner(start, tangent)


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return [200, 32]
