"""pytorchvideo's SlowFast: two paths of frames with lateral connections."""

import torch
from pytorchvideo.models.slowfast import create_slowfast


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = create_slowfast(
            model_depth=50,
            model_num_class=10,
            head_pool_kernel_sizes=((4, 2, 2), (16, 2, 2)),
        )

    def forward(self, slow, fast):
        return self.net([slow, fast])


def get_inputs():
    return [torch.randn(1, 3, 4, 64, 64), torch.randn(1, 3, 16, 64, 64)]


def get_init_inputs():
    return []
