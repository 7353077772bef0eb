"""ProDMP: a network gives the weights of a movement primitive, which gives a smooth trajectory."""

import torch
from mp_pytorch.mp import MPFactory


class Model(torch.nn.Module):
    def __init__(self, joints):
        super().__init__()
        settings = {"num_basis": 10, "basis_bandwidth_factor": 2, "num_basis_outside": 0}
        settings |= {"alpha": 25, "alpha_phase": 2, "dt": 0.01}
        self.primitive = MPFactory.init_mp("prodmp", settings, num_dof=joints, tau=3.0)
        width = self.primitive.num_params
        self.policy = torch.nn.Sequential(
            torch.nn.Linear(24, 128), torch.nn.Tanh(), torch.nn.Linear(128, width)
        )
        self.register_buffer("times", torch.linspace(0, 3, 100))

    def forward(self, observation, position, velocity):
        count = observation.shape[0]
        self.primitive.update_inputs(
            times=self.times.expand(count, -1),
            params=self.policy(observation),
            init_time=torch.zeros(count),
            init_pos=position,
            init_vel=velocity,
        )
        return self.primitive.get_traj_pos(), self.primitive.get_traj_vel()


def get_inputs():
    return [torch.randn(8, 24), torch.randn(8, 7), 0.1 * torch.randn(8, 7)]


def get_init_inputs():
    return [7]
