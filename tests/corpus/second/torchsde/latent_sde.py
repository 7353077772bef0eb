"""A Stratonovich neural SDE with diagonal noise, 8 steps of Heun."""

import torch
import torchsde


class Model(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "stratonovich"

    def __init__(self, dim):
        super().__init__()
        self.drift = torch.nn.Sequential(
            torch.nn.Linear(dim + 1, 32), torch.nn.Softplus(), torch.nn.Linear(32, dim)
        )
        self.spread = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.Linear(1, 16),
                torch.nn.Softplus(),
                torch.nn.Linear(16, 1),
                torch.nn.Sigmoid(),
            )
            for _ in range(dim)
        )

    def f(self, t, y):
        return self.drift(torch.cat([t.expand(y.shape[0], 1), y], dim=1))

    def g(self, t, y):
        return torch.cat(
            [net(column) for net, column in zip(self.spread, y.split(1, dim=1), strict=True)], dim=1
        )

    def forward(self, y):
        times = torch.linspace(0, 1, 5)
        noise = torchsde.BrownianInterval(0.0, 1.0, size=y.shape, entropy=7)
        return torchsde.sdeint(self, y, times, bm=noise, dt=0.125, method="heun")


def get_inputs():
    return [torch.randn(16, 4)]


def get_init_inputs():
    return [4]
