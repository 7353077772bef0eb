"""A KUKA arm as tensors: forward kinematics, Jacobian, inverse and forward dynamics."""

import torch
from differentiable_robot_model.robot_model import DifferentiableKUKAiiwa


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.robot = DifferentiableKUKAiiwa(device="cpu")
        self.policy = torch.nn.Sequential(
            torch.nn.Linear(14, width), torch.nn.Tanh(), torch.nn.Linear(width, 7)
        )

    def forward(self, angles, speeds):
        wanted = self.policy(torch.cat([angles, speeds], dim=1))
        forces = self.robot.compute_inverse_dynamics(angles, speeds, wanted, include_gravity=True)
        speeding = self.robot.compute_forward_dynamics(angles, speeds, forces, include_gravity=True)
        linear, angular = self.robot.compute_endeffector_jacobian(angles, "iiwa_link_ee")
        position, rotation = self.robot.compute_forward_kinematics(angles, "iiwa_link_ee")
        return forces, speeding, linear, angular, position, rotation


def get_inputs():
    return [torch.randn(8, 7), torch.randn(8, 7)]


def get_init_inputs():
    return [64]
