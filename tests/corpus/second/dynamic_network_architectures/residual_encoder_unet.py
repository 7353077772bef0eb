"""nnU-Net's UNet with residual blocks in its encoder, in two dimensions."""

import torch
from dynamic_network_architectures.architectures.unet import ResidualEncoderUNet


class Model(torch.nn.Module):
    def __init__(self, channels, blocks):
        super().__init__()
        self.net = ResidualEncoderUNet(
            3, 4, channels, torch.nn.Conv2d, 3, (1, 2, 2, 2), blocks, 5, (1, 1, 1),
            norm_op=torch.nn.InstanceNorm2d,
            norm_op_kwargs={"eps": 1e-5, "affine": True},
            nonlin=torch.nn.LeakyReLU,
        )  # fmt: skip

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return [[16, 32, 64, 128], [1, 2, 2, 2]]
