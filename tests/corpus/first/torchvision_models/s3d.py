"""torchvision's S3D: inception blocks of separable convolutions of video."""

import torch
from torchvision.models.video import s3d


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = s3d(weights=None, num_classes=10)

    def forward(self, video):
        return self.net(video)


def get_inputs():
    return [torch.randn(1, 3, 16, 224, 224)]


def get_init_inputs():
    return []
