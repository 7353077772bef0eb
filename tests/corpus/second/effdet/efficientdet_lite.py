"""EfficientDet's lite variant: a weighted bidirectional feature pyramid, class and box heads
shared by the levels."""

import torch
from effdet import EfficientDet, get_efficientdet_config


class Model(torch.nn.Module):
    def __init__(self, name, size):
        super().__init__()
        config = get_efficientdet_config(name)
        config.image_size = (size, size)
        self.net = EfficientDet(config, pretrained_backbone=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return ["efficientdet_d0", 128]
