"""A latent ODE: a GRU reads the observations backwards, an ODE in latent space, a decoder."""

import torch
from torchdiffeq import odeint


class Model(torch.nn.Module):
    def __init__(self, features, hidden, latent):
        super().__init__()
        self.encoder = torch.nn.GRU(features, hidden, batch_first=True)
        self.to_latent = torch.nn.Linear(hidden, latent)
        self.dynamics = torch.nn.Sequential(
            torch.nn.Linear(latent, 32), torch.nn.ELU(), torch.nn.Linear(32, latent)
        )
        self.decoder = torch.nn.Sequential(
            torch.nn.Linear(latent, 32), torch.nn.ReLU(), torch.nn.Linear(32, features)
        )

    def forward(self, observations):
        _, state = self.encoder(observations.flip(1))
        times = torch.linspace(0, 1, observations.shape[1])
        path = odeint(
            lambda t, z: self.dynamics(z), self.to_latent(state[-1]), times, method="midpoint"
        )
        return self.decoder(path).transpose(0, 1)


def get_inputs():
    return [torch.randn(8, 12, 3)]


def get_init_inputs():
    return [3, 24, 6]
