"""nnU-Net's plain UNet in three dimensions with an output at every resolution."""

import torch
from dynamic_network_architectures.architectures.unet import PlainConvUNet


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = PlainConvUNet(
            1, 4, channels, torch.nn.Conv3d, 3, (1, 2, 2, 2), 2, 3, 2,
            conv_bias=True,
            norm_op=torch.nn.InstanceNorm3d,
            norm_op_kwargs={"eps": 1e-5, "affine": True},
            nonlin=torch.nn.LeakyReLU,
            nonlin_kwargs={"inplace": True},
            deep_supervision=True,
        )  # fmt: skip

    def forward(self, volume):
        return self.net(volume)


def get_inputs():
    return [torch.randn(1, 1, 32, 32, 32)]


def get_init_inputs():
    return [[8, 16, 32, 64]]
