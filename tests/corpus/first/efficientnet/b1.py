"""efficientnet-pytorch's EfficientNet-B1: padding as TensorFlow pads, for a fixed size."""

import torch
from efficientnet_pytorch import EfficientNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = EfficientNet.from_name("efficientnet-b1", num_classes=10, image_size=64)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
