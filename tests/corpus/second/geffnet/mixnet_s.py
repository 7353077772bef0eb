"""MixNet-S: depthwise kernels of several sizes in one layer, squeeze and excite."""

import geffnet
import torch


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = geffnet.create_model("mixnet_s", pretrained=False, num_classes=classes)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return [100]
