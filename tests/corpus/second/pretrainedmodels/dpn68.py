"""A dual path network: a residual and a dense path side by side."""

import torch
from pretrainedmodels.models.dpn import DPN


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = DPN(
            small=True,
            num_init_features=10,
            k_r=128,
            groups=32,
            k_sec=(3, 4, 12, 3),
            inc_sec=(16, 32, 32, 64),
            num_classes=classes,
            test_time_pool=False,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 224, 224)]


def get_init_inputs():
    return [100]
