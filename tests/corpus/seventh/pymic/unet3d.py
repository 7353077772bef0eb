"""PyMIC's 3-D U-Net for volumes of computed tomography."""

import torch
from pymic.net.net3d.unet3d import UNet3D


class Model(torch.nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.model = UNet3D(
            {
                "in_chns": channels,
                "feature_chns": [8, 16, 32, 64, 128],
                "dropout": [0.0, 0.0, 0.2, 0.2, 0.2],
                "class_num": classes,
                "norm_type": "batch_norm",
                "up_mode": 2,
                "multiscale_pred": False,
            }
        )

    def forward(self, volume):
        return self.model(volume)


def get_inputs():
    return [torch.randn(1, 1, 32, 48, 48)]


def get_init_inputs():
    return [1, 4]
