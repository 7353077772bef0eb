"""COPLE-Net of PyMIC: segmentation of pneumonia lesions with dense, dilated and bridged blocks."""

import torch
from pymic.net.net2d.cople_net import COPLENet


class Model(torch.nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.model = COPLENet(
            {
                "in_chns": channels,
                "feature_chns": [32, 64, 128, 256, 512],
                "dropout": [0.0, 0.0, 0.3, 0.4, 0.5],
                "class_num": classes,
                "up_mode": 2,
            }
        )

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(1, 1, 128, 128)]


def get_init_inputs():
    return [1, 2]
