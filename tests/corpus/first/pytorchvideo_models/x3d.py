"""pytorchvideo's X3D: bottlenecks of channelwise convolutions, swish, squeeze and excitation."""

import torch
from pytorchvideo.models.x3d import create_x3d


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = create_x3d(
            input_clip_length=4, input_crop_size=64, model_num_class=10, depth_factor=1.0
        )

    def forward(self, video):
        return self.net(video)


def get_inputs():
    return [torch.randn(1, 3, 4, 64, 64)]


def get_init_inputs():
    return []
