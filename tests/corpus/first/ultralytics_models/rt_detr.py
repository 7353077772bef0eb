"""ultralytics' RT-DETR over YOLOv8's backbone: queries chosen by score."""

import torch
from ultralytics.nn.tasks import RTDETRDetectionModel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = RTDETRDetectionModel("yolov8n-rtdetr.yaml", nc=5, verbose=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
