"""Pyro: a variational autoencoder written as a model and a guide with plates; the loss is
Trace_ELBO's, from seeded samples."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import Trace_ELBO
from pyro.nn import PyroModule


class Net(PyroModule):
    def __init__(self, pixels, hidden, latent):
        super().__init__()
        self.latent = latent
        self.encoder = torch.nn.Sequential(
            torch.nn.Linear(pixels, hidden),
            torch.nn.Softplus(),
            torch.nn.Linear(hidden, 2 * latent),
        )
        self.decoder = torch.nn.Sequential(
            torch.nn.Linear(latent, hidden), torch.nn.Softplus(), torch.nn.Linear(hidden, pixels)
        )

    def model(self, x):
        with pyro.plate("data", x.shape[0]):
            zero = x.new_zeros(x.shape[0], self.latent)
            z = pyro.sample("z", dist.Normal(zero, torch.ones_like(zero)).to_event(1))
            pyro.sample("x", dist.Bernoulli(logits=self.decoder(z)).to_event(1), obs=x)

    def guide(self, x):
        with pyro.plate("data", x.shape[0]):
            mean, scale = self.encoder(x).chunk(2, dim=-1)
            pyro.sample("z", dist.Normal(mean, scale.exp()).to_event(1))


class Model(torch.nn.Module):
    def __init__(self, pixels, hidden, latent):
        super().__init__()
        self.net = Net(pixels, hidden, latent)
        self.elbo = Trace_ELBO(num_particles=2)

    def forward(self, x):
        return self.elbo.differentiable_loss(self.net.model, self.net.guide, x)


def get_inputs():
    return [(torch.rand(16, 784) > 0.5).float()]


def get_init_inputs():
    return [784, 256, 32]
