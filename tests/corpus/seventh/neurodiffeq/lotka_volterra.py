"""neurodiffeq: two networks reparametrised to meet initial conditions, as a solution of predator
and prey over time."""

import torch
from neurodiffeq.conditions import IVP
from neurodiffeq.networks import FCNN, Resnet, SinActv


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.prey = FCNN(n_input_units=1, n_output_units=1, hidden_units=(width, width))
        self.predator = Resnet(
            n_input_units=1, n_output_units=1, hidden_units=(width, width), actv=SinActv
        )
        self.conditions = [IVP(t_0=0.0, u_0=1.5), IVP(t_0=0.0, u_0=1.0)]

    def forward(self, t):
        return tuple(
            condition.enforce(net, t)
            for net, condition in zip([self.prey, self.predator], self.conditions, strict=True)
        )


def get_inputs():
    return [torch.rand(512, 1) * 12]


def get_init_inputs():
    return [64]
