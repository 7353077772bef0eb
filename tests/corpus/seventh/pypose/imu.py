"""PyPose's IMU preintegration: position, rotation, velocity and their covariance from gyroscope and
accelerometer, corrected by a small network."""

import pypose
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.correct = nn.Sequential(
            nn.Conv1d(6, width, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(width, 6, 5, padding=2),
        )
        self.integrate = pypose.module.IMUPreintegrator(
            torch.zeros(3), pypose.identity_SO3(), torch.zeros(3), gravity=9.81, reset=True
        )

    def forward(self, dt, gyro, acc):
        seen = torch.cat([gyro, acc], dim=-1)
        noise = self.correct(seen.mT).mT * 0.01
        state = self.integrate(dt, gyro + noise[..., :3], acc + noise[..., 3:])
        return state["pos"], state["rot"].tensor(), state["vel"], state["cov"]


def get_inputs():
    gravity = torch.tensor([0.0, 0.0, 9.81])
    return [
        torch.full((2, 50, 1), 0.01),
        torch.randn(2, 50, 3) * 0.1,
        torch.randn(2, 50, 3) * 0.1 + gravity,
    ]


def get_init_inputs():
    return [32]
