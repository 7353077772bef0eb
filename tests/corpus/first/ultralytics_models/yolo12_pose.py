"""ultralytics' YOLO12 nano for poses: attention over areas, keypoints."""

import torch
from ultralytics.nn.tasks import PoseModel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = PoseModel("yolo12n-pose.yaml", nc=1, verbose=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
