"""ultralytics' YOLOv8 nano for segments: boxes, and masks by prototypes."""

import torch
from ultralytics.nn.tasks import SegmentationModel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = SegmentationModel("yolov8n-seg.yaml", nc=5, verbose=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
