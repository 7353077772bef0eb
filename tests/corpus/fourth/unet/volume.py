"""A 3-D U-Net of `unet`: residual, pre-activation, instance norm, PReLU, dilation, trilinear
upsampling."""

import torch
from unet import UNet3D


class Model(torch.nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.net = UNet3D(
            in_channels=2,
            out_classes=classes,
            num_encoding_blocks=3,
            out_channels_first_layer=width,
            normalization="instance",
            upsampling_type="linear",
            preactivation=True,
            residual=True,
            padding=True,
            padding_mode="replicate",
            activation="PReLU",
            initial_dilation=1,
            dropout=0.1,
        )

    def forward(self, volume):
        return self.net(volume).softmax(dim=1)


def get_inputs():
    return [torch.randn(1, 2, 32, 32, 32)]


def get_init_inputs():
    return [4, 8]
