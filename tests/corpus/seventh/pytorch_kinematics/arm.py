"""pytorch_kinematics: a robot's arm of six joints from its URDF; where the end of it is for many
joint angles, and the Jacobian there; a network proposes the angles."""

import pytorch_kinematics
import torch
from torch import nn

AXES = ["0 0 1", "0 1 0", "0 1 0", "0 1 0", "0 0 1", "0 1 0"]


def urdf():
    links = "".join(f'<link name="link{i}"/>' for i in range(len(AXES) + 1))
    joints = "".join(
        f'<joint name="joint{i}" type="revolute"><parent link="link{i}"/>'
        f'<child link="link{i + 1}"/><origin xyz="0 {0.02 * i} 0.3" rpy="0 0 0"/>'
        f'<axis xyz="{axis}"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>'
        for i, axis in enumerate(AXES)
    )
    return f'<robot name="arm">{links}{joints}</robot>'


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.chain = pytorch_kinematics.build_serial_chain_from_urdf(urdf(), f"link{len(AXES)}")
        self.angles = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, len(AXES)))

    def forward(self, goals):
        angles = self.angles(goals)
        reached = self.chain.forward_kinematics(angles).get_matrix()
        return reached, self.chain.jacobian(angles), reached[:, :3, 3] - goals


def get_inputs():
    return [torch.randn(64, 3)]


def get_init_inputs():
    return [128]
