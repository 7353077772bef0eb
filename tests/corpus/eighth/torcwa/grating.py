"""Rigorous coupled-wave analysis of a learnt grating with torcwa."""

import torch
import torcwa
from torch import nn


class Model(nn.Module):
    def __init__(self, side, order):
        super().__init__()
        self.order = order
        self.shape = nn.Parameter(torch.randn(side, side))

    def forward(self, wavelength):
        sim = torcwa.rcwa(
            freq=1 / wavelength,
            order=[self.order, self.order],
            L=[0.7, 0.7],
            dtype=torch.complex64,
            device=torch.device("cpu"),
        )
        sim.add_input_layer(eps=1.46**2)
        sim.set_incident_angle(inc_ang=0.0, azi_ang=0.0)
        rho = torch.sigmoid(4 * self.shape)
        sim.add_layer(thickness=0.4, eps=rho * 12.0 + (1 - rho))
        sim.solve_global_smatrix()
        out = [
            sim.S_parameters(orders=[[0, 0]], polarization=p, ref_order=[0, 0])
            for p in ("xx", "yx")
        ]
        return torch.view_as_real(torch.cat(out))


def get_inputs():
    return [torch.tensor(0.94)]


def get_init_inputs():
    return [48, 3]
