"""MONAI's SwinUNETR: shifted windows of a slice, and a convolutional decoder."""

import torch
from monai.networks.nets import SwinUNETR


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = SwinUNETR(
            in_channels=1,
            out_channels=3,
            feature_size=12,
            window_size=4,
            use_v2=True,
            spatial_dims=2,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 1, 64, 64)]


def get_init_inputs():
    return []
