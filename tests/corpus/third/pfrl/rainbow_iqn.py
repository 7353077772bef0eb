"""Two agents of Atari: an implicit quantile network with cosine features of the quantiles, and a
distributional dueling network; the greedy actions and values of both."""

import torch
from pfrl.agents.iqn import CosineBasisLinear, ImplicitQuantileQFunction
from pfrl.q_functions import DistributionalDuelingDQN


class Model(torch.nn.Module):
    def __init__(self, actions, atoms):
        super().__init__()
        self.implicit = ImplicitQuantileQFunction(
            psi=torch.nn.Sequential(
                torch.nn.Conv2d(4, 32, 8, stride=4),
                torch.nn.ReLU(),
                torch.nn.Conv2d(32, 64, 4, stride=2),
                torch.nn.ReLU(),
                torch.nn.Conv2d(64, 64, 3),
                torch.nn.ReLU(),
                torch.nn.Flatten(),
            ),
            phi=torch.nn.Sequential(CosineBasisLinear(64, 3136), torch.nn.ReLU()),
            f=torch.nn.Sequential(
                torch.nn.Linear(3136, 512), torch.nn.ReLU(), torch.nn.Linear(512, actions)
            ),
        )
        self.categorical = DistributionalDuelingDQN(actions, atoms, -10, 10)

    def forward(self, frames, taus):
        implicit = self.implicit(frames)(taus)
        categorical = self.categorical(frames)
        return (
            implicit.quantiles,
            implicit.greedy_actions,
            categorical.q_values,
            categorical.max_as_distribution,
        )


def get_inputs():
    return [torch.rand(2, 4, 84, 84), torch.rand(2, 32)]


def get_init_inputs():
    return [6, 51]
